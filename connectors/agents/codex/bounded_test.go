package codex

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents"
)

// The sidecar keeps only a limited number of threads and file changes, even if Codex starts very many.
func TestTheMapsAreBounded(t *testing.T) {
	t.Parallel()
	s := &sidecar{items: map[string]item{}, dirs: map[string]string{}}
	for i := range 2 * agents.MaxKept {
		id := strconv.Quote("id-" + strconv.Itoa(i))
		s.threadStarted(map[string]json.RawMessage{"id": []byte(id), "cwd": []byte(`"/p"`)})
		s.itemStarted(object([]byte(`{"threadId":"thr-1","item":{"type":"fileChange","id":` + id + `}}`)))
	}
	last := "id-" + strconv.Itoa(2*agents.MaxKept-1)
	assert.Equal(t, "/p", s.dirOf(last))
	assert.Contains(t, s.items, "thr-1\x00"+last)
	assert.LessOrEqual(t, len(s.dirs), agents.MaxKept)
	assert.LessOrEqual(t, len(s.items), agents.MaxKept)
}
