package acp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNothingIsWrittenAfterAPartialLine: after a line without a line break, every write of a
// lineWriter fails.
func TestNothingIsWrittenAfterAPartialLine(t *testing.T) {
	var out bytes.Buffer
	w := lineWriter{w: &out}
	assert.NoError(t, w.write([]byte("{}\n")))
	assert.NoError(t, w.write([]byte(`{"half`)))
	assert.Error(t, w.write([]byte("{}\n")))
	assert.Equal(t, "{}\n{\"half", out.String())
}

// TestIdKey: equal JSON-RPC ids have the same key even if they are written differently. Different ids
// have different keys.
func TestIdKey(t *testing.T) {
	for _, same := range [][]string{
		{`1`, `1.0`, `1e0`}, {`"1"`, `"\u0031"`}, {`"a"`, `"\u0061"`}, {`-5`, `-5.0`}, {`0`, `-0`},
		{`9007199254740993`}, {`9007199254740992`}, {`1.5`}, {`1e400`}, {`"1.0"`}, {`""`},
	} {
		for _, id := range same {
			assert.Equal(t, idKey([]byte(same[0])), idKey([]byte(id)), id)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{`1`, `"1"`, `"a"`, `-5`, `0`, `9007199254740993`, `9007199254740992`, `1.5`, `1e400`, `"1.0"`, `""`} {
		key := idKey([]byte(id))
		assert.NotEmpty(t, key, id)
		assert.Empty(t, seen[key], "%s is taken for %s", id, seen[key])
		seen[key] = id
	}
	for _, none := range []string{``, `null`, `true`, `{}`, `[1]`} {
		assert.Empty(t, idKey([]byte(none)), none)
	}
}
