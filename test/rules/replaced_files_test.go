package rules

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A person is told if a call on nod's machine creates or replaces a file. nod looks at no file for a
// call from another machine.
func TestAPersonIsToldWhatAWriteReplaces(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engine = engine.Options{Host: "here"} })
	ada, project := env.Agent("ada"), t.TempDir()
	env.NoError(os.WriteFile(filepath.Join(project, "main.go"), []byte("a\nb\n"), 0o600))
	reason := func(id, host, file string) []string {
		r := rig.Call("Write", "S", id)
		input, err := json.Marshal(map[string]string{"file_path": filepath.Join(project, file), "content": "c\n"})
		env.NoError(err)
		r.ActionType, r.ActionDetails, r.Host, r.Project = schemas.ActionFileWrite, input, host, project
		return env.Stored(ada.Asks(r).Key).Record.Reasons
	}
	env.Equal([]string{"replaces a file of 2 lines"}, reason("a", "here", "main.go"))
	env.Equal([]string{"creates a file"}, reason("b", "here", "new.go"))
	env.Equal([]string{"writes a file"}, reason("c", "there", "main.go"))
}
