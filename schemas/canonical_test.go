package schemas

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCanonical(t *testing.T) {
	for text, is := range map[string]bool{
		`{}`: true, `[]`: true, `{"a":1,"b":[true,null,"x"]}`: true, `{"a":"\n\"\\é"}`: true, `{"A":0,"a":10}`: true,
		`{"b":1,"a":1}`: false, `{"a":1,"a":1}`: false, `{"a": 1}`: false, `{"a":1.0}`: false, `{"a":-1}`: false, `{"a":1e2}`: false,
		`{"a":"\/"}`: false, `{"a":"\u0041"}`: false, `{"é":1}`: false, `{"a":01}`: false, `{"a":1234567890123456}`: false, ` {}`: false, `{} `: false,
	} {
		assert.Equal(t, is, canonical([]byte(text)), text)
	}
}

// canon must return the same bytes as the RFC 8785 library, and must fail if the library fails.
func FuzzCanonical(f *testing.F) {
	for _, data := range goldens(f) {
		f.Add(data)
	}
	for _, s := range []string{`{"a":"\u2028"}`, `{"a":"\b\f"}`, `{"a":[{"b":"é","c":"\ud83d\ude00"}]}`, `[0,9,123456789012345]`, `{"b":1,"a":{"d":"\n","c":[]}}`, `{"b":1,"a":2,"b":3}`, `{"ab":1,"aa":2,"aa":3}`, `{"\u0062":1,"a":2}`, `{"\ue000":1,"\ud83d\ude00":2}`, `{"é":1,"a":2}`, `{"b":1.0,"a":-0}`, `{"a":"\u001f","b":"\u007f"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var compact bytes.Buffer
		if json.Compact(&compact, data) != nil || data[0] != '{' && data[0] != '[' { // the library accepts only an object or a list, so other values are not compared
			return
		}
		made, err := jcs.Transform(bytes.Clone(compact.Bytes()))
		compact.Reset()
		require.NoError(t, json.Compact(&compact, withSortedMembers(data)))
		form, ours := canon(compact.Bytes())
		require.Equal(t, err == nil, ours == nil, "%v, %v", err, ours)
		require.Equal(t, string(made), string(form))
	})
}
