package tools

import (
	"encoding/json"
	"testing"
)

func FuzzFlatInput(f *testing.F) {
	for _, s := range []string{`{"command":"ls"}`, `{"a":"b","c":"d"}`, `{"a":"\\"","b":"\\\\"}`, `{"a":"b",}`, `{"a":"b"`, `{}`, `{"a":1}`, `{"a\\u0062":"x"}`, `{"a":"b"}}`, `{"a":"b" }`, `{"a":"\\x"}`, `{"a":"x\\"}`, `{"a": "b",  "c":"d"}`, `{"a": }`, `{"a":"b", }`, `{"a":  `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		flat := flatInput(json.RawMessage(raw))
		if flat == nil {
			return
		}
		var want map[string]string
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatalf("%q is no JSON: %v", raw, err)
		}
		for k := range flat {
			if got, ok := flat.Text(k); !ok || got != want[k] {
				t.Fatalf("%q: %q is %q, not %q", raw, k, got, want[k])
			}
		}
		if len(want) != len(flat) {
			t.Fatalf("%q has other keys", raw)
		}
	})
}
