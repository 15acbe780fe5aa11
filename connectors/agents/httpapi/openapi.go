package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// openapi is the OpenAPI document, without the schemas of nod's messages.
//
//go:embed openapi.json
var openapi []byte

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request, _ *Agent) error {
	send(w, http.StatusOK, s.doc)
	return nil
}

// document returns the OpenAPI document. It adds the schemas of nod's messages to the document.
func document() ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(openapi, &doc); err != nil {
		return nil, fmt.Errorf("read openapi.json: %w", err)
	}
	all := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range []string{"common", "request", "receipt", "decision", "notice", "notices", "error"} {
		data, err := schemas.Schema(name)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		var schema map[string]any
		if err := json.Unmarshal(data, &schema); err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		delete(schema, "$schema")
		rewriteRefs(schema, name)
		all[name] = schema
	}
	request := all["request"].(map[string]any)
	request["required"] = slices.DeleteFunc(request["required"].([]any), func(field any) bool {
		return slices.Contains(fieldsWithDefaults(), field.(string))
	})
	return schemas.Encode(doc)
}

// fieldsWithDefaults returns the names of the required fields that a caller may omit from a request.
// withDefaults adds them.
func fieldsWithDefaults() []string { return []string{"type", "pending_id", "created_at"} }

// rewriteRefs changes the references ("$ref") in v, which is a schema or a part of one, so that they
// lead into the OpenAPI document instead of to schema files. name is the name of this schema.
func rewriteRefs(v any, name string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			rewriteRefs(item, name)
		}
	case map[string]any:
		for _, field := range v {
			rewriteRefs(field, name)
		}
		if ref, ok := v["$ref"].(string); ok {
			file, within, _ := strings.Cut(ref, "#")
			if file == "" {
				file = name
			}
			v["$ref"] = "#/components/schemas/" + strings.TrimSuffix(file, ".schema.json") + within
		}
	}
}
