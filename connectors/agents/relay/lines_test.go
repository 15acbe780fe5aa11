package relay_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/relay"
)

// TestNothingIsWrittenAfterAPartialLine: after a line without a line break, every write of a
// LineWriter fails.
func TestNothingIsWrittenAfterAPartialLine(t *testing.T) {
	var out bytes.Buffer
	w := relay.NewLineWriter(&out)
	assert.NoError(t, w.WriteLine([]byte("{}\n")))
	assert.NoError(t, w.WriteLine([]byte(`{"half`)))
	assert.Error(t, w.WriteLine([]byte("{}\n")))
	assert.Equal(t, "{}\n{\"half", out.String())
}

// TestIDKey: equal JSON-RPC ids have the same key even if their spelling differs. Different ids have
// different keys.
func TestIDKey(t *testing.T) {
	for _, same := range [][]string{
		{`1`, `1.0`, `1e0`}, {`"1"`, `"\u0031"`}, {`"a"`, `"\u0061"`}, {`-5`, `-5.0`}, {`0`, `-0`},
		{`9007199254740993`}, {`9007199254740992`}, {`1.5`}, {`1e400`}, {`"1.0"`}, {`""`},
	} {
		for _, id := range same {
			assert.Equal(t, relay.IDKey([]byte(same[0])), relay.IDKey([]byte(id)), id)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{`1`, `"1"`, `"a"`, `-5`, `0`, `9007199254740993`, `9007199254740992`, `1.5`, `1e400`, `"1.0"`, `""`} {
		key := relay.IDKey([]byte(id))
		assert.NotEmpty(t, key, id)
		assert.Empty(t, seen[key], "%s is taken for %s", id, seen[key])
		seen[key] = id
	}
	for _, none := range []string{``, `null`, `true`, `{}`, `[1]`} {
		assert.Empty(t, relay.IDKey([]byte(none)), none)
	}
}
