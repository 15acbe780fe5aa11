package schemas

import (
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

// What is called canonical is what RFC 8785 makes of it.
func FuzzCanonical(f *testing.F) {
	for _, data := range goldens(f) {
		f.Add(data)
	}
	for _, s := range []string{`{"a":"\u2028"}`, `{"a":"\b\f"}`, `{"a":[{"b":"é","c":"\ud83d\ude00"}]}`, `[0,9,123456789012345]`, `{"a":"\u001f","b":"\u007f"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) || !canonical(data) {
			return
		}
		if len(data) == 0 || data[0] != '{' && data[0] != '[' {
			return // the library wants an object or a list
		}
		made, err := jcs.Transform(data)
		require.NoError(t, err)
		require.Equal(t, string(made), string(data))
	})
}
