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

// SettingsSchema is the JSON Schema of settings.json, whole in itself.
func SettingsSchema() []byte {
	data, err := Schema("settings")
	if err != nil {
		panic(err) // it is embedded
	}
	return data
}

// Schema is the JSON Schema of a message, such as "request", or "common", what
// they share. It refers to others as "NAME.schema.json".
func Schema(name string) ([]byte, error) {
	data, err := schemaFiles.ReadFile("v1/" + name + schemaSuffix)
	if err != nil || name != "settings" {
		return data, err
	}
	return withChannels(data)
}

// noun is what Decode knows of a message type.
type noun struct {
	typ      string // "" for settings.json, which has no envelope
	what     string // its name in errors about all of it
	schema   func() (*jsonschema.Schema, error)
	maxBytes int // 0: what the bus carries
	maxDepth int // 0: what encoding/json reads
}

// nouns are the messages, and settings.json, by the pointer that they decode
// into.
var nouns = sync.OnceValue(loadNouns)

func loadNouns() map[reflect.Type]*noun {
	c := &compiler{jsonschema: newCompiler()}
	all := make(map[reflect.Type]*noun)
	for _, m := range Messages() {
		name := strings.TrimPrefix(m.Type, prefix)
		all[reflect.TypeOf(m.New())] = &noun{typ: m.Type, what: name, schema: c.once(name)}
	}
	request := all[reflect.TypeFor[*Request]()]
	request.maxBytes, request.maxDepth = MaxRequestBytes, MaxDepth
	all[reflect.TypeFor[*Answer]()].maxDepth = MaxDepth // its size: see its check
	all[reflect.TypeFor[*Settings]()] = &noun{what: "settings.json", schema: c.once("settings"), maxBytes: MaxSettingsBytes}
	return all
}

// compiler compiles the embedded schemas. One serves all of them, so that what
// they share is compiled once.
type compiler struct {
	mu         sync.Mutex
	jsonschema *jsonschema.Compiler
}

// once returns the schema of this name, compiled on the first call: a hook
// process needs three of them and has no time for the rest.
func (c *compiler) once(name string) func() (*jsonschema.Schema, error) {
	return sync.OnceValues(func() (*jsonschema.Schema, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		schema, err := c.jsonschema.Compile("nod:///v1/" + name + schemaSuffix)
		if err != nil {
			return nil, fmt.Errorf("compile the schema of %s: %w", name, err)
		}
		shortcut(schema)
		return schema, nil
	})
}

// shortcut puts what a $ref names in its place: beside a $ref our schemas say
// nothing that validates, and following one costs as much as validating it. It
// writes nothing a second time, as others may be using what schemas share.
func shortcut(s *jsonschema.Schema) {
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
	shortcut(s)
	return s
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
	data, err := Schema(strings.TrimSuffix(path.Base(url), schemaSuffix))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
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
