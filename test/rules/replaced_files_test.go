package rules

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	render "github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A person sees whether a call on nod's machine creates or replaces a file. For a call from another
// machine, nod looks at no file.
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
	env.Equal([]string{"overwrites a file, replacing 2 lines by 1"}, reason("a", "here", "main.go"))
	env.Equal([]string{"creates a file"}, reason("b", "here", "new.go"))
	env.Equal([]string{"writes a file"}, reason("c", "there", "main.go"))
}

// A person sees an edit at its place in the file, as the file was when the agent asked, even if the person
// looks again later. The digest covers only the request, and the log has no line of the file.
func TestAPersonSeesAnEditInItsFile(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Engine, s.Settings = engine.Options{Host: "here"}, strings.Replace(rig.Everybody, `"permissions"`, `"log": {"payloads": true}, "permissions"`, 1)
	})
	ada, ann, project := env.Agent("ada"), env.Ann(), t.TempDir()
	file := filepath.Join(project, "main.go")
	env.NoError(os.WriteFile(file, []byte("package main\n\nfunc main() {\n\tx := 1\n\tunrelated()\n}\n"), 0o600))
	edit := func(id, host string) schemas.Request {
		r := rig.Call("Edit", "S"+id, id)
		input, err := json.Marshal(map[string]string{"file_path": file, "old_string": "x := 1", "new_string": "x := 2"})
		env.NoError(err)
		r.ActionType, r.ActionDetails, r.Host, r.Project = schemas.ActionFileWrite, input, host, project
		return r
	}
	text := func(q *rig.Question) string {
		p, page, err := ann.Show(env.Ctx, q.Receipt.SessionID, q.Receipt.PendingID)
		env.NoError(err)
		return render.Layout(render.Unfolded(&p, page.Now.In(time.UTC)), 80)
	}
	const shown = `
Against the file on disk, as it was when asked
│ 1   package main
│ 2   
│ 3   func main() {
│ 4 - ⇥   x := 1
│   + ⇥   x := 2
│ 5   ⇥   unrelated()
│ 6   }
`
	here := ada.Asks(edit("a", "here"))
	env.Contains(text(here), shown)
	env.NoError(os.WriteFile(file, []byte("x := 1\n"), 0o600))
	env.Contains(text(here), shown, "the file has changed since")
	r := edit("a", "here")
	digest, err := schemas.Digest(&r)
	env.NoError(err)
	env.Equal(digest, here.Receipt.Digest)
	ann.Denies(here)
	here.Ends(schemas.Denied)
	env.Contains(text(here), shown, "after the decision too")

	there := ada.Asks(edit("b", "there"))
	env.NotContains(text(there), "on disk")
	env.Nil(env.Stored(there.Key).Record.OnDisk)

	stream, err := env.Raw.Stream(env.Ctx, "permission_log")
	env.NoError(err)
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		msg, err := stream.GetMsg(env.Ctx, seq)
		env.NoError(err)
		env.NotContains(string(msg.Data), "unrelated")
	}
}

// If agents may not read a file's lines, no person sees these lines.
func TestAPersonSeesNoLineOfAFileThatTheRulesCover(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Engine, s.Settings = engine.Options{Host: "here"}, strings.Replace(rig.Everybody, `"Forbidden"`, `"Read(private/**)"`, 1)
	})
	ada, project := env.Agent("ada"), t.TempDir()
	env.NoError(os.Mkdir(filepath.Join(project, "private"), 0o700))
	env.NoError(os.WriteFile(filepath.Join(project, "private", "a"), []byte("neighbour\nx\n"), 0o600))
	r := rig.Call("Edit", "S", "a")
	input, err := json.Marshal(map[string]string{"file_path": "private/a", "old_string": "x", "new_string": "y", "cwd": project})
	env.NoError(err)
	r.ActionType, r.ActionDetails, r.Host, r.Project = schemas.ActionFileWrite, input, "here", project
	env.Equal(&schemas.DiskFile{Note: "your rules do not let nod read it"}, env.Stored(ada.Asks(r).Key).Record.OnDisk)
}
