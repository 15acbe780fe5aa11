package schemas

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed v1/*.schema.json
var schemaFiles embed.FS

const schemaSuffix = ".schema.json"

// SettingsSchema is the JSON Schema of settings.json, whole in itself.
func SettingsSchema() []byte {
	data, err := schemaFiles.ReadFile("v1/settings" + schemaSuffix)
	if err != nil {
		panic(err) // it is embedded
	}
	return data
}

// noun is what Decode knows of a message type.
type noun struct {
	typ      string
	what     string // its name in errors about its size
	schema   func() (*jsonschema.Schema, error)
	maxBytes int // 0: what the bus carries
	maxDepth int // 0: what encoding/json reads
}

// nouns are the messages by the pointer type they decode into. Schemas are
// compiled when first used: a hook process needs three of them.
var nouns = sync.OnceValue(func() map[reflect.Type]*noun {
	all := make(map[reflect.Type]*noun)
	for _, m := range Messages() {
		t := reflect.TypeOf(m.New())
		if all[t] != nil {
			continue
		}
		name := strings.TrimPrefix(m.Type, prefix)
		n := &noun{typ: m.Type, what: name, schema: compileOnce(name)}
		switch m.Type {
		case TypeRequest:
			n.maxBytes, n.maxDepth = MaxRequestBytes, MaxDepth
		case TypeAnswer: // its size is checked where its parts are known
			n.maxDepth = MaxDepth
		}
		all[t] = n
	}
	return all
})

// compileOnce returns the schema of this name, compiled on the first call.
func compileOnce(name string) func() (*jsonschema.Schema, error) {
	return sync.OnceValues(func() (*jsonschema.Schema, error) {
		schema, err := newCompiler().Compile("nod:///v1/" + name + schemaSuffix)
		if err != nil {
			return nil, fmt.Errorf("compile the schema of %s: %w", name, err)
		}
		return schema, nil
	})
}

func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.UseLoader(embedded{})
	c.UseRegexpEngine(compilePattern)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkTime})
	return c
}

// embedded loads schemas from this package and nothing from elsewhere.
type embedded struct{}

func (embedded) Load(url string) (any, error) {
	file, err := schemaFiles.Open("v1/" + path.Base(url))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return jsonschema.UnmarshalJSON(file)
}

// compilePattern is regexp.Compile, but for the pattern that every id of every
// message is held against: a loop does it in a tenth of the time.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	if pattern == idPattern {
		return idMatcher{}, nil
	}
	return regexp.Compile(pattern)
}

type idMatcher struct{}

func (idMatcher) MatchString(s string) bool { return ValidID(s) }
func (idMatcher) String() string            { return idPattern }

// checkTime accepts what time.Time will decode, so that the schema and the
// struct cannot disagree.
func checkTime(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil // its type is told elsewhere
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return errors.New("no RFC 3339 time")
	}
	return nil
}
