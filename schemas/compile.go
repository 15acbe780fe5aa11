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

// Schema returns a JSON Schema by its name: that of a message, such as "request", or "common",
// which has the shared definitions. It refers to other schemas as "NAME.schema.json".
func Schema(name string) ([]byte, error) {
	return schemaFiles.ReadFile("v1/" + name + schemaSuffix)
}

// schemaURL returns the URL by which schemas refer to each other in the compiler. No server has
// this address.
func schemaURL(name string) string { return "nod:///v1/" + name + schemaSuffix }

// noun describes one type of message: its schema, its name and its limits.
type noun struct {
	typ      string // the message's type; "" for settings.json, which has none
	label    string // the message's name in errors
	schema   func() (*jsonschema.Schema, error)
	maxBytes int // the longest message; 0 means the bus's own limit
	maxDepth int // the deepest nesting; 0 means encoding/json's own limit

	// strict and loose return the plans for Decode and Load, or nil if plans do not know a part
	// of the message.
	strict, loose func() *plan
}

func newNoun(message any, n noun) *noun {
	t := reflect.TypeOf(message).Elem()
	n.loose = sync.OnceValue(func() *plan { return newPlan(t, nil) })
	n.strict = sync.OnceValue(func() *plan {
		schema, err := n.schema()
		if err != nil {
			return nil // the full check has the same error
		}
		return newPlan(t, schema)
	})
	return &n
}

var nouns = sync.OnceValue(loadNouns)

func loadNouns() map[reflect.Type]*noun {
	c := &compiler{jsonschema: newCompiler()}
	all := make(map[reflect.Type]*noun)
	for _, m := range Messages() {
		name := strings.TrimPrefix(m.Type, prefix)
		all[reflect.TypeOf(m.New())] = newNoun(m.New(), noun{typ: m.Type, label: name, schema: c.lazy(name)})
	}
	request := all[reflect.TypeFor[*Request]()]
	request.maxBytes, request.maxDepth = MaxRequestBytes, MaxDepth
	all[reflect.TypeFor[*Answer]()].maxDepth = MaxDepth // Answer.check limits the size of an answer
	all[reflect.TypeFor[*Settings]()] = newNoun(new(Settings), noun{label: "settings.json", schema: c.lazy("settings"), maxBytes: MaxSettingsBytes})
	return all
}

// compiler compiles the embedded schemas, with one jsonschema.Compiler for all, so that shared
// definitions are compiled once.
type compiler struct {
	mu         sync.Mutex
	jsonschema *jsonschema.Compiler
}

// lazy returns a function that compiles a schema at its first call. A hook process needs only
// three schemas, and compiling all would delay every call.
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

// inlineRefs replaces each $ref by its target, because following a $ref takes as long as
// validating the target. In nod's schemas only annotations stand beside a $ref, so nothing is
// lost. inlineRefs writes only nodes that it changes, because other goroutines may use shared
// nodes.
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

// schemaLoader loads only the schemas embedded in this package.
type schemaLoader struct{}

func (schemaLoader) Load(url string) (any, error) {
	data, err := Schema(strings.TrimSuffix(path.Base(url), schemaSuffix))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// compilePattern is regexp.Compile, except for the patterns of ids and digests, which every
// message contains: a loop takes a tenth of the time.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	switch pattern {
	case idPattern:
		return idMatcher{}, nil
	case digestPattern:
		return digestMatcher{}, nil
	}
	return regexp.Compile(pattern)
}

type idMatcher struct{}

func (idMatcher) MatchString(s string) bool { return ValidID(s) }
func (idMatcher) String() string            { return idPattern }

// digestPattern is the pattern of digests in the JSON Schemas.
const digestPattern = `^[0-9a-f]{64}$`

type digestMatcher struct{}

func (digestMatcher) String() string { return digestPattern }
func (digestMatcher) MatchString(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

// checkTime accepts the times that time.Time decodes, so that schema and struct agree.
func checkTime(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil // the type in the schema refuses other values
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return errors.New("no RFC 3339 time")
	}
	return nil
}
