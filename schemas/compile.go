package schemas

import (
	"bytes"
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

// Schema returns the JSON Schema of a message, such as "request"; of "common", the
// definitions that the messages share; or of "settings", in which a people connector's
// settings may be any object. It refers to others as "NAME.schema.json".
func Schema(name string) ([]byte, error) {
	return schemaFiles.ReadFile("v1/" + name + schemaSuffix)
}

// schemaURL is the address of a schema within the compiler.
func schemaURL(name string) string { return "nod:///v1/" + name + schemaSuffix }

// noun is how one message type is decoded and limited.
type noun struct {
	typ      string // "" for settings.json, which has no envelope
	label    string // the whole message's name in errors
	schema   func() (*jsonschema.Schema, error)
	maxBytes int // 0: the bus's own limit
	maxDepth int // 0: encoding/json's own limit
}

// nouns maps the pointer type of every message, and of settings.json, to its noun.
var nouns = sync.OnceValue(loadNouns)

func loadNouns() map[reflect.Type]*noun {
	c := &compiler{jsonschema: newCompiler()}
	all := make(map[reflect.Type]*noun)
	for _, m := range Messages() {
		name := strings.TrimPrefix(m.Type, prefix)
		all[reflect.TypeOf(m.New())] = &noun{typ: m.Type, label: name, schema: c.lazy(name)}
	}
	request := all[reflect.TypeFor[*Request]()]
	request.maxBytes, request.maxDepth = MaxRequestBytes, MaxDepth
	all[reflect.TypeFor[*Answer]()].maxDepth = MaxDepth // its check limits its size
	all[reflect.TypeFor[*Settings]()] = &noun{label: "settings.json", schema: c.lazy("settings"), maxBytes: MaxSettingsBytes}
	return all
}

// compiler compiles the embedded schemas. All share one compiler, so that common
// definitions are compiled once.
type compiler struct {
	mu         sync.Mutex
	jsonschema *jsonschema.Compiler
}

// lazy returns a function that compiles the schema of this name at its first call: a hook
// process needs three schemas and has no time for the rest.
func (c *compiler) lazy(name string) func() (*jsonschema.Schema, error) {
	return sync.OnceValues(func() (*jsonschema.Schema, error) {
		return c.compile(name)
	})
}

func (c *compiler) compile(name string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	schema, err := c.jsonschema.Compile(schemaURL(name))
	if err != nil {
		return nil, fmt.Errorf("compile the schema of %s: %w", name, err)
	}
	inlineRefs(schema)
	return schema, nil
}

// inlineRefs replaces each $ref by its target: nothing beside a $ref validates in our
// schemas, and following one costs as much as validating it. It writes a node only to
// change it, because other goroutines may already use shared nodes.
func inlineRefs(s *jsonschema.Schema) {
	for name, field := range s.Properties {
		if t := target(field); t != field {
			s.Properties[name] = t
		}
	}
	if t := target(s.Items2020); t != s.Items2020 {
		s.Items2020 = t
	}
	if t := target(s.Then); t != s.Then {
		s.Then = t
	}
}

func target(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	for s.Ref != nil {
		s = s.Ref
	}
	inlineRefs(s)
	return s
}

func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.UseLoader(schemaLoader{})
	c.UseRegexpEngine(compilePattern)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkTime})
	return c
}

// schemaLoader loads schemas from this package only.
type schemaLoader struct{}

func (schemaLoader) Load(url string) (any, error) {
	data, err := Schema(strings.TrimSuffix(path.Base(url), schemaSuffix))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// compilePattern is regexp.Compile, except for the pattern of ids, which every message is
// checked against: a loop needs a tenth of the time.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	if pattern == idPattern {
		return idMatcher{}, nil
	}
	return regexp.Compile(pattern)
}

type idMatcher struct{}

func (idMatcher) MatchString(s string) bool { return ValidID(s) }
func (idMatcher) String() string            { return idPattern }

// checkTime accepts the times that time.Time decodes, so that schema and struct agree.
func checkTime(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil // another rule refuses it
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return errors.New("no RFC 3339 time")
	}
	return nil
}
