package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A call is known only if nod can read every word of the call, and if no word leads outside the project.
func TestACallIsKnownIfNodCanReadAllOfIt(t *testing.T) {
	p := preset(t, "")
	for _, line := range []string{"make", "npm test", "go test ./... 2>&1 | tail -5", "cd src && go vet ./x", "git commit -m 'a b'", "mkdir -p " + project + "/x", "go build -o bin/x ./cmd/x", "npm run build -- --out=dist/a"} {
		assert.True(t, p.Known(bash(t, line)), line)
	}
	for _, line := range []string{
		"cat $F", "echo $(cat x)", "for i in a; do rm $i; done", "cat *.go", "cp a /etc/x", "cp a ../x", "cd .. && make", "cd - && make", "make -C ..", "go build -o=/usr/bin/x", "gcc -I/usr/include x.c", "docker run -v /:/host x", "docker run -v x:/host x",
		"cat .env", "cat ~/.ssh/id", "make > /etc/x", "make < .env", "python3 - <<E\nx\nE", "tar x -f a -C ..", "rsync a host:/x", "ls ~ann", "cd /tmp && make", "",
	} {
		assert.False(t, p.Known(bash(t, line)), line)
	}
	assert.True(t, p.Known(call(t, "Edit", map[string]any{"file_path": project + "/a.go"})))
	assert.True(t, p.Known(call(t, "WebFetch", map[string]any{"url": "https://example.com"})))
	for _, path := range []string{"/etc/x", project + "/.git/config", "../x", project + "/.claude/settings.json", "~/.bashrc", ""} {
		assert.False(t, p.Known(call(t, "Edit", map[string]any{"file_path": path})), path)
	}
	assert.False(t, p.Known(call(t, "mcp__x__y", map[string]any{})))
	nowhere := bash(t, "make")
	nowhere.Cwd, nowhere.Project = "", ""
	assert.False(t, p.Known(nowhere))
}
