package relay

import (
	"encoding/json"
	"strconv"
)

// IDKey returns a key that is the same for all spellings of a JSON-RPC id. For example, 1 and 1.0 have
// the same key, and so have "a" and "\u0061", but 1 and "1" have different keys. For a value that
// cannot be an id, such as null, IDKey returns "".
func IDKey(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return `"` + s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) != nil || n == "" {
		return ""
	}
	const exact = 1 << 53
	if f, err := n.Float64(); err == nil && f == float64(int64(f)) && f > -exact && f < exact {
		return strconv.FormatInt(int64(f), 10)
	}
	return n.String()
}
