package relay

import (
	"encoding/json"
	"strconv"
)

// IDKey returns a key for a JSON-RPC id. All spellings of an id have the same key: 1 and 1.0 have the
// same key, and so have "a" and "\u0061". 1 and "1" have different keys, because they are different
// ids. If the value cannot be an id, such as null, the key is "".
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
