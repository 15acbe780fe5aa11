package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/test/internal/rig"
)

// schemaNode has those parts of a JSON Schema that the settings reference shows.
type schemaNode struct {
	Ref         string                 `json:"$ref"`
	Defs        map[string]*schemaNode `json:"$defs"`
	Type        any                    `json:"type"`
	Description string                 `json:"description"`
	Enum        []any                  `json:"enum"`
	Properties  map[string]*schemaNode `json:"properties"`
	Items       *schemaNode            `json:"items"`
	Required    []string               `json:"required"`
	Minimum     *json.Number           `json:"minimum"`
	Maximum     *json.Number           `json:"maximum"`
}

// rows returns a table row for each setting below a node.
func (n *schemaNode) rows(root *schemaNode, path string) (rows []string) {
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		p := n.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if name == "$schema" {
			at = name
		}
		full := p.resolved(root)
		description := p.Description
		if description == "" {
			description = full.Description
		}
		value := full.value(root)
		if slices.Contains(n.Required, name) {
			value += ", required"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", at, value, strings.ReplaceAll(description, "|", `\|`)))
		below := full
		if full.Items != nil {
			below, at = full.Items.resolved(root), at+"[]"
		}
		rows = append(rows, below.rows(root, at)...)
	}
	return rows
}

func (n *schemaNode) resolved(root *schemaNode) *schemaNode {
	if def := root.Defs[strings.TrimPrefix(n.Ref, "#/$defs/")]; n.Ref != "" && def != nil {
		return def
	}
	return n
}

func (n *schemaNode) value(root *schemaNode) string {
	if len(n.Enum) > 0 {
		var all []string
		for _, v := range n.Enum {
			all = append(all, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(all, ", ")
	}
	if n.Items != nil {
		return "list of " + n.Items.resolved(root).value(root)
	}
	text := "value"
	if t, ok := n.Type.(string); ok {
		text = t
	} else if n.Properties != nil {
		text = "object"
	}
	if n.Minimum != nil && n.Maximum != nil {
		text += fmt.Sprintf(", %s to %s", *n.Minimum, *n.Maximum)
	} else if n.Minimum != nil {
		text += fmt.Sprintf(", at least %s", *n.Minimum)
	}
	return text
}

// The settings reference is generated from the settings' schema.
func TestSettingsReferenceMatchesTheSchema(t *testing.T) {
	const page = "docs/reference/settings.md"
	schema, err := embed.SettingsSchema()
	require.NoError(t, err)
	var root schemaNode
	require.NoError(t, json.Unmarshal(schema, &root))
	rows := root.rows(&root, "")
	for _, row := range rows {
		require.NotContains(t, row, "|  |", "a setting has no description in its schema")
	}
	text := "# Settings\n\nEach setting of settings.json. `nod settings schema` prints the JSON Schema, for completion in editors; `nod settings apply` puts the file in force. This page is generated from that schema.\n\n" +
		"| Setting | Value | Meaning |\n|---|---|---|\n" + strings.Join(rows, "")
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("../..", page), []byte(text), 0o644))
		return
	}
	require.Equal(t, text, rig.Document(t, page), "run go test ./test/docs -run Settings -update")
}
