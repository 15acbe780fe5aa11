package policy

import (
	"encoding/json"
	"strconv"
	"strings"
)

// cellSource returns the text of a notebook's cell. Hosts name a cell by its id or, as cell-N, by its
// place from 0.
func cellSource(notebook, id string) (string, bool) {
	var all struct {
		Cells []struct {
			ID     string          `json:"id"`
			Source json.RawMessage `json:"source"`
		} `json:"cells"`
	}
	if json.Unmarshal([]byte(notebook), &all) != nil {
		return "", false
	}
	place := -1
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "cell-")); err == nil && id == "cell-"+strconv.Itoa(n) {
		place = n
	}
	for i := range all.Cells {
		if all.Cells[i].ID == id {
			place = i
			break
		}
	}
	if place < 0 || place >= len(all.Cells) {
		return "", false
	}
	source := all.Cells[place].Source
	var lines []string
	if json.Unmarshal(source, &lines) == nil {
		return strings.Join(lines, ""), true
	}
	var text string
	err := json.Unmarshal(source, &text)
	return text, err == nil
}
