package schemas

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

//go:embed v1/*.schema.json
var schemaFiles embed.FS

const schemaSuffix = ".schema.json"

// Schema returns the JSON Schema with this name: the name of a message, such as "request", or "common"
// for the shared definitions. The schema refers to other schemas by "NAME.schema.json".
func Schema(name string) ([]byte, error) {
	return schemaFiles.ReadFile("v1/" + name + schemaSuffix)
}

// noun is one type of message, with its schema, its names and its limits.
type noun struct {
	typ      string // the message's type; "" for settings.json, which has none
	team     string // another type that Load accepts; "" for none
	label    string // the message's name in errors
	schema   func() (*schema, error)
	maxBytes int // the greatest size of a message; 0 means the bus's own limit
	maxDepth int // the deepest nesting; 0 means the limit of encoding/json

	// strict returns the plan for Decode, and loose the plan for Load. If a plan is nil, every message
	// of this type needs the full check.
	strict, loose func() *plan
}

func newNoun(message any, n noun) *noun {
	t := reflect.TypeOf(message).Elem()
	n.loose = sync.OnceValue(func() *plan { return newPlan(t, nil) })
	n.strict = sync.OnceValue(func() *plan {
		schema, err := n.schema()
		if err != nil {
			return nil // the full check reports the error in the schema
		}
		return newPlan(t, schema)
	})
	return &n
}

var nouns = sync.OnceValue(loadNouns)

func loadNouns() map[reflect.Type]*noun {
	c := newCompiler()
	all := make(map[reflect.Type]*noun)
	for _, m := range Messages() {
		name := strings.TrimPrefix(m.Type, prefix)
		all[reflect.TypeOf(m.New())] = newNoun(m.New(), noun{typ: m.Type, label: name, schema: c.lazy(name)})
	}
	request := all[reflect.TypeFor[*Request]()]
	request.maxBytes, request.maxDepth = MaxRequestBytes, MaxDepth
	all[reflect.TypeFor[*Record]()].team = TeamRecord
	all[reflect.TypeFor[*Answer]()].maxDepth = MaxDepth // the method Answer.check limits the size of an answer
	all[reflect.TypeFor[*Settings]()] = newNoun(new(Settings), noun{label: "settings.json", schema: c.lazy("settings"), maxBytes: MaxSettingsBytes})
	return all
}

// compiler reads embedded schemas, each of them only once.
type compiler struct {
	mu    sync.Mutex
	files map[string]*schema // the schemas by name; while mu is locked, a $ref in them may not be replaced yet
}

func newCompiler() *compiler { return &compiler{files: map[string]*schema{}} }

// lazy returns a function that reads the schema with this name when it is first called, because most
// processes need few schemas.
func (c *compiler) lazy(name string) func() (*schema, error) {
	return sync.OnceValues(func() (*schema, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		s, err := c.file(name)
		if err != nil {
			return nil, fmt.Errorf("compile the schema of %s: %w", name, err)
		}
		return s, nil
	})
}

func (c *compiler) file(name string) (*schema, error) {
	if s := c.files[name]; s != nil {
		return s, nil
	}
	data, err := Schema(name)
	if err != nil {
		return nil, err
	}
	return c.add(name, data)
}

// add decodes a schema and replaces each $ref by its target. The replacement loses no rule, because
// in nod's schemas only annotations stand beside a $ref.
func (c *compiler) add(name string, data []byte) (*schema, error) {
	var s *schema
	if err := decodeSchema(data, &s); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, errors.New("the schema is null")
	}
	c.files[name] = s
	return s, c.link(name, s)
}

// link replaces each $ref in a part of a schema by its target. The parameter file is the name of the
// schema.
func (c *compiler) link(file string, s *schema) error {
	parts := []**schema{&s.Items, &s.If, &s.Then}
	if s.AdditionalProperties != nil {
		parts = append(parts, &s.AdditionalProperties.schema)
	}
	for _, p := range parts {
		if err := c.linkPart(file, p); err != nil {
			return err
		}
	}
	for _, members := range []map[string]*schema{s.Defs, s.Properties} {
		for _, name := range slices.Collect(maps.Keys(members)) {
			part := members[name]
			if err := c.linkPart(file, &part); err != nil {
				return err
			}
			members[name] = part
		}
	}
	return nil
}

func (c *compiler) linkPart(file string, part **schema) (err error) {
	switch {
	case *part == nil:
		return nil
	case (*part).Ref == "":
		return c.link(file, *part)
	}
	*part, err = c.target(file, (*part).Ref)
	return err
}

// target returns the schema to which a $ref in a file refers. If the target itself is a $ref, this is
// an error, so that references cannot form a circle.
func (c *compiler) target(file, ref string) (*schema, error) {
	path, definition, inside := strings.Cut(ref, "#/$defs/")
	if path != "" {
		file = strings.TrimSuffix(path, schemaSuffix)
	}
	s, err := c.file(file)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", ref, err)
	}
	if inside {
		s = s.Defs[definition]
	}
	if s == nil || s.Ref != "" {
		return nil, fmt.Errorf("%s names no schema, or another reference", ref)
	}
	return s, nil
}
