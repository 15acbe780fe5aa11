package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// nod compares a call with its file only if the file is a text that nod may read. It does not wait for a
// pipe, and stores no content of a file that may contain secrets.
func TestACallIsComparedOnlyWithFilesThatNodMayRead(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "app")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	link := func(name, to string) { require.NoError(t, os.Symlink(to, filepath.Join(dir, name))) }
	write("main.go", "a\nold\nb\n")
	write(".env", "KEY=old\n")
	write("../.hidden", "old\n")
	write("binary", "old\x00\n")
	write("latin1", "old\xe9\n")
	write("large", strings.Repeat("old\n", maxReplaced))
	write("cert", "old\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n")
	write("book.ipynb", `{"cells":[{"id":"c1","source":["x = 1\n","y"]},{"source":"z"}]}`)
	write("decoy.ipynb", `{"cells":[{"id":"c1","source":"x"}],"Cells":[{"id":"c1","source":"y"}]}`)
	write("decoysource.ipynb", `{"cells":[{"id":"c1","source":"x","Source":"y"}]}`)
	write("twice.ipynb", `{"cells":[{"id":"c1","source":"x"},{"id":"c1","source":"y"},{"id":"cell-3","source":"a"},{"source":"b"}]}`)
	write("broken.ipynb", `{"cells":[{"id":"c1","source":7}`)
	link("link", "main.go")
	link("secretlink", ".env")
	link("hiddenlink", "../.hidden")
	link("loop", "loop")
	link("up", "sub")
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	pol, err := New(schemas.Permissions{})
	require.NoError(t, err)

	const secret = "nod does not read files that may hold secrets"
	for file, note := range map[string]string{
		"main.go": "", "link": "", "./sub/../main.go": "", dir + "/main.go": "",
		"main.go/": "nod does not know which file it is",
		".env":     secret, "secretlink": secret, "hiddenlink": secret, "../.hidden": secret, "/proc/1/environ": secret, "/proc/self/environ": "nod cannot read the file", "/dev/zero": secret,
		"pipe": "it is no ordinary file", "sub": "it is no ordinary file", "none.go": "there is no such file",
		"binary": "the file is not text", "latin1": "the file is not text", "large": "the file is larger than 1 MiB",
		"cert": "the file holds a private key", "loop": "nod cannot read the file", "main.go/x": "nod cannot read the file",
	} {
		input, err := json.Marshal(map[string]string{"file_path": file, "old_string": "old", "new_string": "new"})
		require.NoError(t, err)
		got := ThisDisk{}.ReadWritten(t.Context(), pol, Call{ToolName: "Edit", Input: input, Cwd: dir, Project: dir}).File
		require.NotNil(t, got, file)
		if note != "" {
			assert.Equal(t, &schemas.DiskFile{Note: note}, got, file)
			continue
		}
		assert.Equal(t, []schemas.DiskHunk{{Line: 1, Around: []string{"a\n", "\nb\n"}}}, got.Edits[0].Hunks, file)
	}
	unknown := ThisDisk{}.ReadWritten(t.Context(), pol, Call{ToolName: "Edit", Input: json.RawMessage(`{"file_path":"main.go","old_string":"old","new_string":"new"}`)}).File
	assert.Equal(t, "nod does not know which file it is", unknown.Note)

	for input, want := range map[string]*schemas.DiskFile{
		`{"notebook_path":"book.ipynb","cell_id":"c1","new_source":"x = 2\ny"}`:                         {Cell: true, Lines: 2, Changes: []schemas.DiskChange{{Line: 1, Removed: "x = 1\n", Added: 1}}},
		`{"notebook_path":"book.ipynb","cell_id":"cell-1","new_source":"z"}`:                            {Cell: true, Lines: 1},
		`{"notebook_path":"book.ipynb","cell_id":"c9","new_source":"z"}`:                                {Note: "nod does not know the cell"},
		`{"notebook_path":"broken.ipynb","cell_id":"c1","new_source":"z"}`:                              {Note: "nod does not know the cell"},
		`{"notebook_path":"decoy.ipynb","cell_id":"c1","new_source":"z"}`:                               {Note: "nod does not know the cell"},
		`{"notebook_path":"decoysource.ipynb","cell_id":"c1","new_source":"z"}`:                         {Note: "nod does not know the cell"},
		`{"notebook_path":"twice.ipynb","cell_id":"c1","new_source":"z"}`:                               {Note: "nod does not know the cell"},
		`{"notebook_path":"twice.ipynb","cell_id":"cell-3","new_source":"z"}`:                           {Note: "nod does not know the cell"},
		`{"file_path":"main.go","content":"x","mode":"append"}`:                                         nil,
		`{"file_path":"main.go","content":"x","append":true}`:                                           nil,
		`{"file_path":"main.go","edits":[{"old_string":"a","new_string":"b","count":2}]}`:               nil,
		`{"notebook_path":"book.ipynb","cell_id":"c1","new_source":"z","edit_mode":"insert"}`:           nil,
		`{"file_path":"main.go","old_string":"old","new_str":"new"}`:                                    nil,
		`{"file_path":"main.go","path":"link","content":"x"}`:                                           nil,
		`{"file_path":"main.go","content":"x","old_string":"old","new_string":"new"}`:                   nil,
		`{"file_path":"main.go","edits":[{"old_string":"old"}]}`:                                        nil,
		`{"file_path":"main.go","content":7}`:                                                           nil,
		`{"file_path":"link","content":"a\nold\nb\n"}`:                                                  {Lines: 3},
		`{"file_path":"none.go","content":"x"}`:                                                         {New: true},
		`{"file_path":"none.go","old_string":"","new_string":"x"}`:                                      {New: true},
		`{"file_path":"main.go","content":"a\nold\nb\n"}`:                                               {Lines: 3},
		`{"file_path":"main.go","edits":[{"old_string":"a\nold","new_string":"x","replace_all":true}]}`: {Lines: 3, Edits: []schemas.DiskEdit{{Count: 1, Hunks: []schemas.DiskHunk{{Line: 1, Around: []string{"", "\nb\n"}}}}}},
	} {
		tool := "Edit"
		if strings.Contains(input, "notebook") {
			tool = "NotebookEdit"
		}
		got := ThisDisk{}.ReadWritten(t.Context(), pol, Call{ToolName: tool, Input: json.RawMessage(input), Cwd: dir, Project: dir}).File
		assert.Equal(t, want, got, input)
	}
}

// If the rules do not let the agent read a file without a question, nod shows no line of the file.
func TestAFileThatTheRulesCoverIsNotRead(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "app")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "private"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(top, "elsewhere"), 0o700))
	for _, name := range []string{"main.go", "private/a.go", "asked.go", "../elsewhere/b.go"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("a\nold\nb\n"), 0o600))
	}
	require.NoError(t, os.Symlink("private", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("private/a.go", filepath.Join(dir, "one.go")))
	pol, err := New(schemas.Permissions{Deny: []string{"Read(/" + top + "/**/private/**)", "Read(~/elsewhere/**)"}, Ask: []string{"Read(asked.go)", "Edit(main.go)"}})
	require.NoError(t, err)
	for file, read := range map[string]bool{
		"main.go": true, "private/a.go": false, "./private/../private/a.go": false, dir + "/private/a.go": false, "link/a.go": false, "one.go": false,
		"asked.go": false, "../elsewhere/b.go": false, "~/elsewhere/b.go": false,
	} {
		for _, texts := range []string{`"old_string":"old","new_string":"new"`, `"content":"new"`} {
			got := ThisDisk{}.ReadWritten(t.Context(), pol, Call{ToolName: "Edit", Input: json.RawMessage(`{"file_path":"` + file + `",` + texts + `}`), Cwd: dir, Project: dir, Home: top}).File
			require.NotNil(t, got, file)
			if read {
				assert.Empty(t, got.Note, file)
			} else {
				assert.Equal(t, &schemas.DiskFile{Note: "your rules do not let nod read it"}, got, file)
			}
		}
	}
	tight, _, err := pol.Tighten(schemas.Permissions{Deny: []string{"Read(main.go)"}}, dir)
	require.NoError(t, err)
	got := ThisDisk{}.ReadWritten(t.Context(), tight, Call{ToolName: "Write", Input: json.RawMessage(`{"file_path":"main.go","content":"x"}`), Cwd: dir, Project: dir}).File
	assert.Equal(t, "your rules do not let nod read it", got.Note, "the project's rules count too")
}

// If a link replaces a directory after nod has checked the path, nod reads no file behind the link.
func TestAReplacedDirectoryIsNotFollowed(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(top, "real"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(top, "real", "a"), []byte("text"), 0o600))
	require.NoError(t, os.Symlink("real", filepath.Join(top, "link")))
	text, err := readText(filepath.Join(top, "real", "a"))
	require.NoError(t, err)
	require.Equal(t, "text", text)
	_, err = readText(filepath.Join(top, "link", "a"))
	require.Error(t, err)
}
