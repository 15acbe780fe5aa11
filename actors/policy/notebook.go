package policy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// cellSource returns the text of the cell that a call names. Hosts name a cell by its id, or as cell-N by its
// index, which begins at 0. ok is false if other programs could take another text for this cell.
func cellSource(notebook, id string) (text string, ok bool) {
	top, ok := jsonFields([]byte(notebook))
	var cells []json.RawMessage
	if !ok || json.Unmarshal(top["cells"], &cells) != nil {
		return "", false
	}
	var sources []json.RawMessage
	for i, raw := range cells {
		cell, ok := jsonFields(raw)
		if !ok {
			return "", false
		}
		var own string
		if json.Unmarshal(cell["id"], &own) == nil && own == id || id == "cell-"+strconv.Itoa(i) {
			sources = append(sources, cell["source"])
		}
	}
	if len(sources) != 1 {
		return "", false
	}
	var lines []string
	if json.Unmarshal(sources[0], &lines) == nil {
		return strings.Join(lines, ""), true
	}
	err := json.Unmarshal(sources[0], &text)
	return text, err == nil
}

// jsonFields returns the fields of a JSON object by their exact names. ok is false if two field names are
// equal, or differ only in case.
func jsonFields(raw []byte) (fields map[string]json.RawMessage, ok bool) {
	members, err := schemas.Members(bytes.TrimSpace(raw))
	if err != nil {
		return nil, false
	}
	fields = map[string]json.RawMessage{}
	folded := map[string]bool{}
	for _, m := range members {
		if folded[strings.ToLower(m.Name)] {
			return nil, false
		}
		folded[strings.ToLower(m.Name)], fields[m.Name] = true, m.Value
	}
	return fields, true
}
