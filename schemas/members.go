package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Member is a member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of a JSON object in order. It returns an error for any other value. It
// also returns an error if a name occurs twice, because programs disagree about the meaning of such
// objects.
func Members(object []byte) ([]Member, error) {
	if len(object) == 0 || object[0] != '{' || !json.Valid(object) {
		return nil, errors.New("not an object")
	}
	dec := json.NewDecoder(bytes.NewReader(object))
	_, err := dec.Token()
	var all []Member
	seen := map[string]bool{}
	for err == nil && dec.More() {
		var m Member
		var name json.Token
		if name, err = dec.Token(); err != nil {
			break
		}
		m.Name, _ = name.(string)
		err = dec.Decode(&m.Value)
		if seen[m.Name] {
			return nil, errors.New("it names a field twice")
		}
		seen[m.Name] = true
		all = append(all, m)
	}
	return all, err
}
