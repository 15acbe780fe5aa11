package schemas

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A struct and its schema must have the same fields. The schema must require exactly those fields
// that Go always writes, which have neither omitempty nor omitzero. If Go always writes a list or a
// pointer, the schema must accept null, because Go writes nil as null. An enum in the schema must
// list the constants of the Go type.
func TestSchemasMatchTheStructs(t *testing.T) {
	p := parity{T: t, docs: readSchemas(t), constants: readConstants(t)}
	for _, m := range Messages() {
		name := strings.TrimPrefix(m.Type, prefix)
		p.compare(name, reflect.TypeOf(m.New()), schemaNode{file: name + schemaSuffix, node: p.docs[name+schemaSuffix]})
	}
	p.compare("settings", reflect.TypeFor[Settings](), schemaNode{file: "settings" + schemaSuffix, node: p.docs["settings"+schemaSuffix]})
}

func TestEveryMessageTypeHasASchemaSampleAndRow(t *testing.T) {
	docs := readSchemas(t)
	rows := make(map[string]bool)
	for _, m := range Messages() {
		rows[m.Type] = true
	}
	expected := []string{"common" + schemaSuffix, "settings" + schemaSuffix}
	for _, typ := range readConstants(t)["message types"] {
		name := strings.TrimPrefix(typ, prefix)
		expected = append(expected, name+schemaSuffix)
		assert.True(t, rows[typ], "%s has no row in Messages", typ)
		assert.FileExists(t, "v1/golden/"+name+".json")
		invalid, err := filepath.Glob("v1/golden/invalid/" + name + "-*.json")
		require.NoError(t, err)
		assert.NotEmpty(t, invalid, "%s has no invalid example", typ)
		doc := docs[name+schemaSuffix]
		require.NotNil(t, doc, "%s has no schema", typ)
		assert.Equal(t, map[string]any{"const": typ}, doc["properties"].(map[string]any)["type"], name)
	}
	assert.ElementsMatch(t, expected, slices.Collect(maps.Keys(docs)), "a schema for each type and no other")
}

// Only annotations may stand beside a $ref, because Decode replaces a $ref by its target. The schema of
// settings.json may refer to no other file, because it is published alone.
func TestReferencesStandAlone(t *testing.T) {
	for file, doc := range readSchemas(t) {
		walk(doc, func(node map[string]any) {
			ref, ok := node["$ref"].(string)
			if !ok {
				return
			}
			for key := range node {
				assert.Contains(t, []string{"$ref", "description"}, key, "beside %s in %s", ref, file)
			}
			if file == "settings"+schemaSuffix {
				assert.True(t, strings.HasPrefix(ref, "#/"), "%s refers to another file", file)
			}
		})
	}
	whole := bytes.Replace(mustRead(t, "v1/settings.schema.json"), []byte(`"additionalProperties": { "type": "object" }`), []byte(`"additionalProperties": false`), 1)
	given, err := SettingsSchema()
	require.NoError(t, err)
	assert.JSONEq(t, string(whole), string(given))
}

func TestSchemaLimitsMatchTheConstants(t *testing.T) {
	docs := readSchemas(t)
	at := func(path string) any {
		file, pointer, _ := strings.Cut(path, "#/")
		var node any = docs[file+schemaSuffix]
		for step := range strings.SplitSeq(pointer, "/") {
			node = node.(map[string]any)[step]
		}
		return node
	}
	for path, want := range map[string]int{
		"await#/properties/requests/maxItems":                   MaxAwaited,
		"await_reply#/properties/results/maxItems":              MaxAwaited,
		"common#/$defs/timeout_seconds/maximum":                 int(MaxTimeout / time.Second),
		"settings#/$defs/seconds/maximum":                       int(MaxTimeout / time.Second),
		"settings#/properties/log/properties/max_days/maximum":  MaxLogDays,
		"settings#/properties/log/properties/max_bytes/minimum": MinLogBytes,
		"settings#/properties/log/properties/max_bytes/maximum": MaxLogBytes,
		"common#/$defs/text/maxLength":                          MaxAnswerBytes,
		"common#/$defs/revision/maximum":                        1 << 53,
		"common#/$defs/path/maxLength":                          MaxPath,
		"common#/$defs/paths/maxItems":                          MaxDirs,
	} {
		assert.EqualValues(t, want, at(path), path)
	}
	assert.Equal(t, idPattern, at("common#/$defs/id/pattern"))
	assert.EqualValues(t, MaxPath, at("session_change#/properties/permissions/properties/working_dir/maxLength"))
	assert.Equal(t, idPattern, at("settings#/$defs/identity/properties/connector/pattern"))
}

type parity struct {
	*testing.T
	docs      map[string]map[string]any
	constants map[string][]string
}

// schemaNode is a part of a schema, with the file to which its references are relative.
type schemaNode struct {
	file string
	node map[string]any
}

func (p parity) follow(at schemaNode) schemaNode {
	for {
		ref, ok := at.node["$ref"].(string)
		if then, nullable := at.node["then"].(map[string]any); nullable {
			at.node = then
			continue
		}
		if !ok {
			return at
		}
		file, pointer, _ := strings.Cut(ref, "#/")
		if file != "" {
			at.file = file
		}
		at.node = p.docs[at.file]
		require.NotNil(p, at.node, "%s is not there", ref)
		for step := range strings.SplitSeq(pointer, "/") {
			if step != "" {
				at.node, _ = at.node[step].(map[string]any)
				require.NotNil(p, at.node, "%s is not there", ref)
			}
		}
	}
}

func (p parity) compare(path string, typ reflect.Type, at schemaNode) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	at = p.follow(at)
	switch {
	case typ == reflect.TypeFor[json.RawMessage]():
		assert.Equal(p, "object", at.node["type"], path)
		assert.NotContains(p, at.node, "properties", "%s is free", path)
	case typ == reflect.TypeFor[time.Time]():
		assert.Equal(p, "date-time", at.node["format"], path)
	case p.constants[typ.Name()] != nil:
		assert.ElementsMatch(p, p.constants[typ.Name()], at.node["enum"], path)
	case typ.Kind() == reflect.Struct:
		p.compareFields(path, typ, at)
	case typ.Kind() == reflect.Slice:
		p.compare(path+"[]", typ.Elem(), schemaNode{at.file, at.node["items"].(map[string]any)})
	default:
		if _, constant := at.node["const"]; !constant {
			want := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Uint64: "integer"}
			assert.Equal(p, want[typ.Kind()], at.node["type"], path)
		}
		if typ.Kind() == reflect.Uint64 {
			assert.EqualValues(p, 0, at.node["minimum"], path)
		}
	}
}

func (p parity) compareFields(path string, typ reflect.Type, at schemaNode) {
	assert.Equal(p, "object", at.node["type"], path)
	fields := jsonFields(p, reflect.Zero(typ).Interface())
	properties := at.node["properties"].(map[string]any)
	assert.ElementsMatch(p, slices.Collect(maps.Keys(fields)), slices.Collect(maps.Keys(properties)), path)

	var always []any
	for name, field := range fields {
		node, ok := properties[name].(map[string]any)
		if !ok {
			continue // another check reports a missing field
		}
		if field.always {
			always = append(always, name)
		}
		types, listed := node["type"].([]any)
		if listed { // a list of types in a schema stands for a type that also accepts null
			assert.Equal(p, "null", types[1], "%s.%s", path, name)
			assert.True(p, field.always, "%s.%s: Go never writes it as null", path, name)
		} else if field.always {
			assert.NotEqual(p, reflect.Pointer, field.typ.Kind(), "%s.%s: Go may write it as null", path, name)
		}
		p.compare(path+"."+name, field.typ, schemaNode{at.file, node})
	}
	required, _ := at.node["required"].([]any)
	assert.ElementsMatch(p, always, required, "%s: required", path)
}

type jsonField struct {
	typ    reflect.Type
	always bool // Go writes the field even if its value is empty
}

func jsonFields(t testing.TB, v any) map[string]jsonField {
	t.Helper()
	fields := make(map[string]jsonField)
	for field := range reflect.TypeOf(v).Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		require.Regexp(t, `^(\$schema|[a-z][a-z0-9_]*)$`, name, "%T.%s", v, field.Name)
		fields[name] = jsonField{field.Type, options == ""}
	}
	return fields
}

func readSchemas(t testing.TB) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob("v1/*.json")
	require.NoError(t, err)
	docs := make(map[string]map[string]any)
	for _, file := range files {
		var doc map[string]any
		require.NoError(t, json.Unmarshal(mustRead(t, file), &doc), file)
		assert.Equal(t, "https://json-schema.org/draft/2020-12/schema", doc["$schema"], file)
		docs[filepath.Base(file)] = doc
	}
	return docs
}

// readConstants reads the string constants of each type from the source code, because reflection does not
// know constants. The untyped Type… constants have the key "message types".
func readConstants(t testing.TB) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	constants := make(map[string][]string)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if typ, ok := spec.Type.(*ast.Ident); ok {
				constants[typ.Name] = append(constants[typ.Name], value)
			} else if strings.HasPrefix(spec.Names[0].Name, "Type") {
				constants["message types"] = append(constants["message types"], value)
			}
			return true
		})
	}
	return constants
}

func walk(node any, visit func(map[string]any)) {
	switch node := node.(type) {
	case map[string]any:
		visit(node)
		for _, child := range node {
			walk(child, visit)
		}
	case []any:
		for _, child := range node {
			walk(child, visit)
		}
	}
}

func mustRead(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data
}
