package policy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// cellSource returns the text of a notebook's cell. Hosts name a cell by its id or, as cell-N, by its
// place from 0. ok is false if programs could read the notebook in different ways.
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

// jsonFields returns the fields of a JSON object by their exact names. ok is false if two names are the
// same, or differ only in case.
func jsonFields(raw []byte) (fields map[string]json.RawMessage, ok bool) {
	if json.Unmarshal(raw, &fields) != nil {
		return nil, false
	}
	folded := map[string]bool{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var name json.Token
		if name, err = dec.Token(); err != nil {
			break
		}
		text, _ := name.(string)
		if folded[strings.ToLower(text)] {
			return nil, false
		}
		folded[strings.ToLower(text)] = true
		var value json.RawMessage
		err = dec.Decode(&value)
	}
	return fields, err == nil && fields != nil
}
