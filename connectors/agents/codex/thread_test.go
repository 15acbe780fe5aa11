//go:build unix

package codex_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/codex"
	"github.com/nodbus/nod/nodtest"
)

// The project of a request decides which rules apply. It must be the directory of the thread, which
// the client chose. It must not be the directory of the command, which the model chose.
func TestTheProjectIsTheThreadsDirectory(t *testing.T) {
	t.Parallel()
	elsewhere := strings.NewReplacer(`"cwd":"/p/deep"`, `"cwd":"/tmp/x"`).Replace
	for name, c := range map[string]struct {
		says, thread, project string
	}{
		"started":                      {`{"id":3,"result":{"thread":{"id":"thr-2","cwd":"/q"},"cwd":"/q"}}`, "thr-2", "/q"},
		"announced":                    {`{"method":"thread/started","params":{"thread":{"id":"thr-2","cwd":"/q","parentThreadId":null}}}`, "thr-2", "/q"},
		"moved by its client":          {`{"method":"thread/settings/updated","params":{"threadId":"thr-1","threadSettings":{"cwd":"/q"}}}`, "thr-1", "/q"},
		"another agent's":              {`{"method":"thread/started","params":{"thread":{"id":"thr-2","cwd":"/tmp/x","parentThreadId":"thr-1"}}}`, "thr-2", "/p"},
		"read, not opened":             {`{"id":3,"result":{"thread":{"id":"thr-1","cwd":"/tmp/x"}}}`, "thr-1", "/p"},
		"another thread's":             {`{"id":3,"result":{"thread":{"id":"thr-2"},"cwd":"/tmp/x"}}`, "thr-1", "/p"},
		"an error":                     {`{"id":3,"error":{"thread":{"id":"thr-1"},"cwd":"/tmp/x"}}`, "thr-1", "/p"},
		"a request with a result":      {`{"id":3,"method":"x","result":{"thread":{"id":"thr-1"},"cwd":"/tmp/x"}}`, "thr-1", "/p"},
		"an unreadable thread":         {`{"id":3,"result":{"thread":7,"cwd":"/tmp/x"}}`, "thr-1", "/p"},
		"a child of an unknown thread": {`{"method":"thread/started","params":{"thread":{"id":"thr-3","cwd":"/tmp/x","parentThreadId":"thr-9"}}}`, "thr-3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, codex.Options{})
			r.says(c.says + "\n")
			assert.Equal(t, c.says+"\n", r.reads())
			r.says(strings.ReplaceAll(elsewhere(approval("1", "")), "thr-1", c.thread))
			p := r.asked()
			r.answers <- nodtest.Deny("no")
			assert.Contains(t, r.heard(), `"decline"`)
			assert.Equal(t, c.project, p.Request.Project)
			assert.Equal(t, c.project, strings.TrimSuffix("/"+p.Request.SessionLabel, "/"))
			assert.Contains(t, string(p.Request.ActionDetails), `"cwd":"/tmp/x"`, "a person sees where it runs")
		})
	}
}
