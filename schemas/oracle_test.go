package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oracleLoader gives the embedded schemas to a library, with which the test compares nod's own
// validation.
type oracleLoader struct{}

func (oracleLoader) Load(url string) (any, error) {
	data, err := Schema(strings.TrimSuffix(path.Base(url), schemaSuffix))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

func oracle(t testing.TB) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.UseLoader(oracleLoader{})
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: string(dateTime), Validate: func(v any) error {
		if s, ok := v.(string); ok && !isTime(s) {
			return fmt.Errorf("no time")
		}
		return nil
	}})
	return c
}

// nod's own validation and a complete implementation of JSON Schema agree on which samples of all
// messages are valid. The samples are valid messages, invalid messages, and random changes of both.
func TestValidationAgreesWithAnotherImplementation(t *testing.T) {
	other := oracle(t)
	random := rand.New(rand.NewPCG(20, 26))
	refused, accepted := 0, 0
	for typ, n := range nouns() {
		name := n.label
		if name == "settings.json" {
			name = "settings"
		}
		own, err := n.schema()
		require.NoError(t, err, name)
		theirs, err := other.Compile("nod:///v1/" + name + schemaSuffix)
		require.NoError(t, err, name)
		samples, err := fs.Glob(os.DirFS("v1/golden"), name+".json")
		require.NoError(t, err)
		more, err := fs.Glob(os.DirFS("v1/golden"), "invalid/"+name+"-*.json")
		require.NoError(t, err)
		require.NotEmpty(t, samples, "%s (%s)", name, typ)
		for _, file := range slices.Concat(samples, more) {
			var tree any
			dec := json.NewDecoder(bytes.NewReader(mustRead(t, "v1/golden/"+file)))
			dec.UseNumber()
			if dec.Decode(&tree) != nil {
				continue // the sample is not JSON
			}
			original := tree
			for range 120 {
				if random.IntN(3) == 0 {
					tree = original
				}
				var found faults
				own.validate(tree, &found)
				theirError := theirs.Validate(tree)
				if !assert.Equal(t, theirError == nil, len(found) == 0, "%s, changed to %v:\n%v", file, tree, theirError) {
					return
				}
				if len(found) > 0 {
					refused++
				} else {
					accepted++
				}
				tree = mutated(random, tree)
			}
		}
	}
	assert.Greater(t, refused, 1000)
	assert.Greater(t, accepted, 1000)
}

// mutated returns v with one random change, mostly a small one.
func mutated(r *rand.Rand, v any) any {
	values := []any{nil, true, "", "x", "ada", "@network", "/tmp", strings.Repeat("é", 300), json.Number("0"), json.Number("-1"), json.Number("1.0"),
		json.Number("1.5"), json.Number("9007199254740992"), []any{}, []any{"a", nil}, map[string]any{}, map[string]any{"kind": "human"}}
	any1 := func() any { return values[r.IntN(len(values))] }
	switch v := v.(type) {
	case map[string]any:
		v = maps.Clone(v)
		names := slices.Sorted(maps.Keys(v))
		switch {
		case len(names) == 0 || r.IntN(12) == 0:
			v["extra"] = any1()
		case r.IntN(12) == 0:
			delete(v, names[r.IntN(len(names))])
		default:
			name := names[r.IntN(len(names))]
			v[name] = mutated(r, v[name])
		}
		return v
	case []any:
		v = slices.Clone(v)
		if len(v) == 0 || r.IntN(8) == 0 {
			return append(v, any1())
		}
		i := r.IntN(len(v))
		v[i] = mutated(r, v[i])
		return v
	}
	if r.IntN(3) == 0 {
		return any1()
	}
	return v
}

// A channel's schema with an unknown keyword is refused, because nod would not check that keyword.
func TestAnUnknownKeywordIsRefused(t *testing.T) {
	for keyword, reason := range map[string]string{
		`{"type":"object","uniqueItems":true}`: "uniqueItems", `{"type":"text"}`: "no type of JSON", `{"format":"uri","type":"string"}`: "no format",
		`{"pattern":"("}`: "missing closing", `{"properties":{"a":{"oneOf":[]}}}`: "oneOf", `{"additionalProperties":{"not":{}}}`: "not",
	} {
		var s *schema
		assert.ErrorContains(t, decodeSchema([]byte(keyword), &s), reason)
	}
	_, err := DecodeSettings([]byte(`{"connectors":{"pigeon":{}}}`), ChannelSettings{Name: "pigeon", Schema: []byte(`{"oneOf":[]}`)})
	assert.ErrorContains(t, err, "oneOf")
	assert.Equal(t, CodeInternal, err.(*Error).Code)
}

func TestEveryReferenceIsReplaced(t *testing.T) {
	c := newCompiler()
	seen := map[*schema]bool{}
	var visit func(s *schema)
	visit = func(s *schema) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		assert.Empty(t, s.Ref)
		for _, part := range slices.Concat(slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.Defs)), []*schema{s.Items, s.If, s.Then}) {
			visit(part)
		}
	}
	for typ := range nouns() {
		name := nouns()[typ].label
		if typ == reflect.TypeFor[*Settings]() {
			name = "settings"
		}
		s, err := c.file(name)
		require.NoError(t, err)
		visit(s)
	}
	assert.Greater(t, len(seen), 200)
}
