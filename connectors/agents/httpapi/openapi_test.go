package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/schemas"
)

// checkedTransport sends HTTP requests. It returns an error if a response does not match the OpenAPI
// document, or has a status that the document does not list.
type checkedTransport struct{}

func (checkedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var body []byte
	if body, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, document().check(r.Method, r.URL.Path, resp.StatusCode, resp.Header, body)
}

// openapi is the parsed OpenAPI document, with a compiler for its schemas.
type openapi struct {
	tree     map[string]any
	compiler *jsonschema.Compiler

	mu   sync.Mutex
	seen map[string]bool // "METHOD path status" of each response so far
}

var document = sync.OnceValue(func() *openapi {
	data, err := httpapi.Document()
	if err != nil {
		panic(err)
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("nod:///openapi.json", tree); err != nil {
		panic(err)
	}
	return &openapi{tree: tree.(map[string]any), compiler: c, seen: map[string]bool{}}
})

// at returns the object at a path in the document, or nil.
func at(v any, steps ...string) map[string]any {
	for _, step := range steps {
		m, _ := v.(map[string]any)
		v = m[step]
	}
	m, _ := v.(map[string]any)
	return m
}

func escape(step string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
}

func (o *openapi) check(method, path string, status int, h http.Header, body []byte) error {
	template := path
	if rest, ok := strings.CutPrefix(path, "/api/v1/requests/"); ok && rest != "" {
		template = "/api/v1/requests/{id}"
	}
	method = strings.ToLower(method)
	if at(o.tree, "paths", template, method) == nil {
		if status != http.StatusNotFound && template != "/api/v1/hooks/claude-code" {
			return fmt.Errorf("%s %s is not described, and was answered with %d", method, path, status)
		}
		return nil
	}
	code := strconv.Itoa(status)
	response := at(o.tree, "paths", template, method, "responses", code)
	if response == nil {
		return fmt.Errorf("%s %s: the status %d is not described: %s", method, template, status, body)
	}
	o.mu.Lock()
	o.seen[method+" "+template+" "+code] = true
	o.mu.Unlock()
	for name := range at(response, "headers") {
		if h.Get(name) == "" {
			return fmt.Errorf("%s %s %d: the header %s is missing", method, template, status, name)
		}
	}
	if response["content"] == nil {
		if len(body) > 0 {
			return fmt.Errorf("%s %s %d: has a body: %s", method, template, status, body)
		}
		return nil
	}
	if kind := h.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("%s %s %d: the content is %q", method, template, status, kind)
	}
	return o.validate(body, "paths", template, method, "responses", code, "content", "application/json", "schema")
}

// validate checks data against the schema at a path in the document.
func (o *openapi) validate(data []byte, steps ...string) error {
	for i := range steps {
		steps[i] = escape(steps[i])
	}
	where := strings.Join(steps, "/")
	o.mu.Lock()
	schema, err := o.compiler.Compile("nod:///openapi.json#/" + where)
	o.mu.Unlock()
	if err != nil {
		return fmt.Errorf("compile %s: %w", where, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w: %s", where, err, data)
	}
	if err := schema.Validate(v); err != nil {
		return fmt.Errorf("%s: %w: %s", where, err, data)
	}
	return nil
}

// TestMain runs the tests. If it runs all of them, they must together cause every response that the
// OpenAPI document lists.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		for path, methods := range at(document().tree, "paths") {
			for method := range methods.(map[string]any) {
				for status := range at(methods, method, "responses") {
					if key := method + " " + path + " " + status; !document().seen[key] {
						fmt.Fprintf(os.Stderr, "the OpenAPI document names an answer that no test has seen: %s\n", key)
						code = 1
					}
				}
			}
		}
	}
	os.Exit(code)
}

// The routes of the server are exactly the paths in the OpenAPI document.
func TestEveryRouteIsDescribed(t *testing.T) {
	var described []string
	for path, methods := range at(document().tree, "paths") {
		for method := range methods.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(described)
	require.Equal(t, httpapi.Routes(), described)
}

func TestTheDocumentIsServedWhole(t *testing.T) {
	r := fake(t, func(*httpapi.Options) {})
	for _, path := range []string{"/openapi.json", "/api/v1/openapi.json"} {
		got := r.does("GET", path, "", func(req *http.Request) { req.Header.Del("Authorization") })
		r.Equal(http.StatusOK, got.status)
		r.NotContains(got.body, "schema.json", "a reference that leads out of it")
		var doc map[string]any
		r.NoError(json.Unmarshal([]byte(got.body), &doc))
		r.Equal("3.1.0", doc["openapi"])
		r.Empty(got.header.Values("Access-Control-Allow-Origin"), "web pages may not read it")
		r.refused(r.does("GET", path, "", header("Origin", "https://evil.example")), 403, "FORBIDDEN")
		r.refused(r.does("GET", path, "", func(req *http.Request) { req.Host = "evil.example" }), 421, "FORBIDDEN")
	}

	// The document's schema for requests accepts bodies that the server accepts. It refuses a body
	// without a title.
	in := []string{"paths", "/api/v1/requests", "post", "requestBody", "content", "application/json", "schema"}
	r.NoError(document().validate([]byte(deploy("S", "1")), slices.Clone(in)...))
	r.NoError(document().validate([]byte(`{"session_id":"S","kind":"question","title":"T","action_type":"other","action_details":{}}`), slices.Clone(in)...))
	r.Error(document().validate([]byte(`{"session_id":"S","kind":"question","action_type":"other","action_details":{}}`), slices.Clone(in)...))
}

// nod accepts each request among the document's examples. Each response among the examples matches its
// schema and is one that nod could send.
func TestTheExamplesOfTheDocument(t *testing.T) {
	r := start(t)
	body := []string{"paths", "/api/v1/requests", "post", "requestBody", "content", "application/json"}
	requests := at(document().tree, append(body, "examples")...)
	r.Len(requests, 4)
	for name := range requests {
		example, err := json.Marshal(requests[name].(map[string]any)["value"])
		r.NoError(err)
		r.NoError(document().validate(example, append(slices.Clone(body), "schema")...), name)
		r.Equal(http.StatusAccepted, r.does("POST", "/api/v1/requests", string(example)).status, name)
	}
	seen := 0
	for path, methods := range at(document().tree, "paths") {
		for method := range methods.(map[string]any) {
			for status := range at(methods, method, "responses") {
				content := []string{"paths", path, method, "responses", status, "content", "application/json"}
				for name, example := range at(document().tree, append(content, "examples")...) {
					data, err := json.Marshal(example.(map[string]any)["value"])
					r.NoError(err)
					r.NoError(document().validate(data, append(slices.Clone(content), "schema")...), name)
					switch {
					case status == "200" && path == "/api/v1/notices":
						r.NoError(schemas.Decode(data, new(schemas.Notices)), name)
					case status == "200":
						r.NoError(schemas.Decode(data, new(schemas.Decision)), name)
					}
					seen++
				}
			}
		}
	}
	r.Greater(seen, 8)
}
