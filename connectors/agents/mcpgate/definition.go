package mcpgate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"

	"github.com/nodbus/nod/connectors/agents"
)

// definition is the description of a tool by its server.
type definition struct {
	// text contains the fields readByModels as indented JSON. The names are sorted, because the order of
	// the fields has no meaning.
	text        string
	description string
	// annotations are what the server claims about the tool, such as readOnlyHint. People see these
	// claims, but no rule uses them.
	annotations map[string]json.RawMessage
}

// readByModels are the fields of a tool that a model reads before it makes calls.
var readByModels = []string{"title", "description", "inputSchema", "outputSchema"}

// readDefinition parses one element of a list of tools. A field such as "Description" is an error,
// because some clients take it for description.
func readDefinition(raw json.RawMessage) (name string, d definition, err error) {
	fields, err := members(raw, append(readByModels, "name", "annotations")...)
	if err != nil {
		return "", d, err
	}
	if err := json.Unmarshal(fields["name"], &name); err != nil {
		return "", d, errors.New("a tool has no name")
	}
	seen := map[string]any{}
	for _, field := range readByModels {
		if len(fields[field]) == 0 {
			continue
		}
		var value any
		dec := json.NewDecoder(bytes.NewReader(fields[field]))
		dec.UseNumber()
		if err := dec.Decode(&value); err != nil {
			return "", d, err
		}
		seen[field] = value
	}
	d.description, _ = seen["description"].(string)
	_ = json.Unmarshal(fields["annotations"], &d.annotations) // annotations that are not an object claim nothing
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(seen)
	d.text = text.String()
	return name, d, err
}

// tools contains the definitions of tools that the client has seen. In a folder, it also stores each tool's
// definition with which nod last allowed a call. Several gates of one server may use the same folder.
type tools struct {
	dir string // if empty, only memory keeps the definitions

	mu     sync.Mutex
	listed map[string]definition
	// changed contains the definitions that differ from the allowed ones. Such a definition stays even
	// if a later list contains the allowed one again, because the model has read the other one.
	changed map[string]change
	pinned  map[string]string // the texts of the allowed definitions, by tool, if dir is empty
}

// change contains a definition that differs from the allowed one, with which nod last allowed a call.
type change struct{ was, is string }

func newTools(dir string) *tools {
	return &tools{dir: dir, listed: map[string]definition{}, changed: map[string]change{}, pinned: map[string]string{}}
}

// record stores the tools in a server's response to tools/list. It returns an error if it cannot read a
// definition in the response, or a stored one. The client must then not get the response.
func (t *tools) record(result json.RawMessage) error {
	var list []json.RawMessage
	fields, err := members(result, "tools")
	if err == nil && len(fields["tools"]) > 0 {
		err = json.Unmarshal(fields["tools"], &list)
	}
	if err != nil {
		return fmt.Errorf("read the server's list of tools: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, raw := range list {
		name, d, err := readDefinition(raw)
		if err != nil {
			return fmt.Errorf("read the server's list of tools: %w", err)
		}
		if _, listed := t.listed[name]; !listed && len(t.listed) >= agents.MaxKept { // refuse further tools, because the gate could not notice the changes of a tool that it does not keep
			return fmt.Errorf("the server lists more than %d tools", agents.MaxKept)
		}
		was, known, err := t.pin(name)
		if err != nil {
			return err
		}
		t.listed[name] = d
		if known && was != d.text {
			t.changed[name] = change{was, d.text}
		}
	}
	return nil
}

// find returns the definition of a tool that the client saw last. It also returns the tool's change, if
// there is one that nobody has accepted.
func (t *tools) find(name string) (d definition, listed bool, c change, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, listed = t.listed[name]
	c, changed = t.changed[name]
	return d, listed, c, changed
}

// accept stores that a person has accepted the change c.
func (t *tools) accept(name string, c change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.setPin(name, c.is); err != nil {
		return err
	}
	if newest := t.changed[name]; newest.is == c.is {
		delete(t.changed, name)
	} else { // another change has replaced c while the person decided
		t.changed[name] = change{c.is, newest.is}
	}
	return nil
}

// allow stores the definition of a tool when nod allows a call of the tool for the first time.
func (t *tools) allow(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, listed := t.listed[name]
	if _, known, err := t.pin(name); !listed || known || err != nil {
		return err
	}
	return t.setPin(name, d.text)
}

func (t *tools) file(name string) string {
	sum := sha256.Sum256([]byte(name)) // a hash, because the name of a tool may look like a path
	return filepath.Join(t.dir, hex.EncodeToString(sum[:12])+".json")
}

// pin returns the text of the definition with which nod last allowed a call of the tool.
func (t *tools) pin(name string) (text string, known bool, err error) {
	if t.dir == "" {
		text, known = t.pinned[name]
		return text, known, nil
	}
	data, err := os.ReadFile(t.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read the allowed definition of the tool %q: %w", name, err)
	}
	return string(data), true, nil
}

func (t *tools) setPin(name, text string) error {
	if t.dir == "" {
		t.pinned[name] = text
		return nil
	}
	err := os.MkdirAll(t.dir, 0o700)
	if err != nil {
		return fmt.Errorf("store the allowed definition of the tool %q: %w", name, err)
	}
	f, err := os.CreateTemp(t.dir, "new-*")
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(f.Name(), t.file(name))
		}
		if err != nil {
			_ = os.Remove(f.Name()) // if this fails, an unused file remains
		}
	}
	if err != nil {
		return fmt.Errorf("store the allowed definition of the tool %q: %w", name, err)
	}
	return nil
}

// difference returns a text that shows the change line by line.
func (c change) difference() string {
	return udiff.Unified("when it was last allowed", "now", c.was, c.is)
}

// claims returns the server's claims about a tool as a text for people.
func (d definition) claims() string {
	var parts []string
	for _, hint := range []struct{ name, is, isNot string }{
		{"readOnlyHint", "only reads", "does not only read"},
		{"destructiveHint", "may destroy", "destroys nothing"},
		{"idempotentHint", "does the same when repeated", "does more when repeated"},
		{"openWorldHint", "reaches beyond this machine", "stays within a closed world"},
	} {
		switch string(d.annotations[hint.name]) {
		case "true":
			parts = append(parts, hint.is)
		case "false":
			parts = append(parts, hint.isNot)
		}
	}
	text := "The server describes no effects of this tool."
	if len(parts) > 0 {
		text = "The server claims, unchecked, that this tool " + strings.Join(parts, ", ") + "."
	}
	if d.description != "" {
		text += " Its description: " + d.description
	}
	return text
}
