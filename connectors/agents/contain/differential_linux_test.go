package contain

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

var (
	differential     = flag.Int("differential", 50, "the number of lines that TestLinesThatRunUnaskedLeakNothing runs contained")
	differentialSeed = flag.Uint64("differential-seed", 1, "the seed of the lines that TestLinesThatRunUnaskedLeakNothing generates")
)

// linesInContainer is the number of command lines that run in one container. Several lines
// share a container, because its start takes longer than most lines.
const linesInContainer = 50

// The test makes its command lines from these lines and from parts of them.
var differentialLines = []string{
	"ls -la", "cat main.txt", "git log --oneline -5 | head", "cd deep && ls", "grep -rn plain .", "sed -n '1,5p' main.txt", "find . -name '*.txt'", "echo 'a; b'", "ls 2>/dev/null || true", "rg -n 'a|b' deep", "awk '{print $1}' main.txt",
	"wc -l < main.txt", "git diff HEAD -- main.txt", "sort -u main.txt | uniq -c | sort -rn", "git branch --list 'x*'", "git status --short", "git show --stat", "git ls-files", "git blame main.txt", "for f in *; do echo $f; done", "make -n", "make test", "go test ./...", "npm test",
	"python3 -m pytest -q", "git add -A", "git commit -m x", "mkdir -p build/x", "touch build/a", "echo x > build/log.txt", "rm -rf build", "head -c 100 main.txt", "tail -n 3 main.txt", "diff main.txt tools/clean.sh", "stat main.txt", "file main.txt", "du -sh .", "od -c main.txt", "strings main.txt",
	"base64 main.txt", "tree -L 2", "test -f main.txt && echo yes", "[ -d deep ] || echo no", "printf '%s\\n' a b", "basename deep/er", "realpath main.txt", "xargs -n1 echo < main.txt", "cat main.txt | tr a b | cut -c1-3", "timeout 1 cat main.txt", "env | sort", "id", "ps aux", "git stash list", "git grep plain", "node --version", "sh tools/clean.sh < main.txt", "bash -c 'ls -a'",
}

// corpusLines returns the shell commands in the files of the directory NOD_CORPUS. It returns none
// if NOD_CORPUS is not set.
func corpusLines(t *testing.T) (lines []string) {
	dir := os.Getenv("NOD_CORPUS")
	if dir == "" {
		t.Log("the corpora are left out: NOD_CORPUS names no directory")
		return nil
	}
	calls, err := os.Open(filepath.Join(dir, "real-calls.jsonl"))
	require.NoError(t, err)
	defer calls.Close()
	for in := bufio.NewScanner(calls); in.Scan(); {
		var call struct {
			Input struct{ Command string } `json:"tool_input"`
		}
		if json.Unmarshal(in.Bytes(), &call) == nil && call.Input.Command != "" && len(call.Input.Command) < 500 {
			lines = append(lines, call.Input.Command)
		}
	}
	table, err := os.ReadFile(filepath.Join(dir, "shell.tsv"))
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		for field := range strings.SplitSeq(strings.TrimSpace(line), "\t") {
			lines = append(lines, field) // some fields are no commands; the preset does not allow them, or they do no harm
		}
	}
	return lines
}

// mutated returns one of the lines with up to three changes. Each change replaces or extends a word
// of the line by one of the words, or appends another line.
func mutated(rnd *rand.Rand, lines, words []string) string {
	line := lines[rnd.IntN(len(lines))]
	for range rnd.IntN(4) {
		fields := strings.Split(line, " ")
		at, word := rnd.IntN(len(fields)), words[rnd.IntN(len(words))]
		switch rnd.IntN(5) {
		case 0:
			fields[at] = word
		case 1, 2:
			fields[at] += " " + word
		case 3:
			fields[at] += word
		default:
			line += []string{" | ", " && ", "; ", " || ", "\n"}[rnd.IntN(5)] + lines[rnd.IntN(len(lines))]
			continue
		}
		line = strings.Join(fields, " ")
	}
	return line
}

// bait opens a TCP and a UDP port on this machine. words are arguments that make a program
// connect to these ports, and reached counts the connections and packets that arrive.
func bait(t *testing.T) (words []string, reached *atomic.Int64) {
	reached = new(atomic.Int64)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = tcp.Close(), udp.Close() })
	go func() {
		for conn, err := tcp.Accept(); err == nil; conn, err = tcp.Accept() {
			reached.Add(1)
			_ = conn.Close()
		}
	}()
	go func() {
		for _, _, err := udp.ReadFrom(make([]byte, 1)); err == nil; _, _, err = udp.ReadFrom(make([]byte, 1)) {
			reached.Add(1)
		}
	}()
	at, packets := tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	return []string{fmt.Sprintf("http://127.0.0.1:%d/x", at), fmt.Sprintf("/dev/tcp/127.0.0.1/%d", at), fmt.Sprintf("> /dev/tcp/127.0.0.1/%d", at), fmt.Sprintf("/dev/udp/127.0.0.1/%d", packets)}, reached
}

// The preset named contained lets some command lines run without a question. These lines must print no
// secret, reach no host, and change nothing outside the project. A line that only reads must change no file
// at all. The test makes the lines from real lines. The flag -differential is their number.
func TestLinesThatRunUnaskedLeakNothing(t *testing.T) {
	p, err := policy.New(schemas.Permissions{Preset: policy.PresetContained})
	require.NoError(t, err)
	reads, writes := dangerous(t), dangerous(t)
	for _, r := range []*rig{reads, writes} {
		r.file("Makefile", "test:\n\tcat .env deep/key.pem ../../home/.ssh/id; ls -la\n")
		r.file("package.json", `{"scripts":{"test":"cat .env"}}`)
	}
	reads.change = func(o *order) { o.Spec.ReadOnly = true }
	targets, reached := bait(t)
	lines := append(corpusLines(t), differentialLines...)
	words := append([]string{".env", "deep/er/.env", "deep/key.pem", "copy-of-env", "config/prod", "way-out/file", ".", "..", "*", ".*", "deep", "deep/er/x.pem", "~/.ssh/id", "../../home/.netrc", "/proc/self/root", "/proc/1/environ", ".git/config", "/dev/stdin", "-", "--"}, targets...)
	for _, line := range lines {
		words = append(words, strings.Fields(line)...)
	}
	rnd := rand.New(rand.NewPCG(*differentialSeed, 0))
	seen, ran, tried := map[string]bool{}, 0, 0
	batches := map[*rig][]string{}
	run := func(r *rig) {
		batch := batches[r]
		batches[r] = nil
		before := r.snapshot()
		out := r.run(append([]string{"bash", "-c", `i=0; for l; do echo; echo "@@$i"; timeout 2 bash -c "$l" </dev/null 2>&1 | head -c 20000; i=$((i+1)); done; echo; echo @@done`, "_"}, batch...)...).out
		require.Contains(t, out, "@@done", "a container ended early: %q", batch)
		for i, part := range strings.Split(out, "\n@@")[1:] {
			if strings.Contains(part, marker) && i < len(batch) {
				assert.Fail(t, "a line prints a secret", "%q", batch[i])
			}
		}
		after := r.snapshot()
		for file, text := range before {
			if r == reads || !strings.HasPrefix(file, r.project+"/") {
				assert.Equal(t, text, after[file], "one of the lines changes %s: %q", file, batch)
			}
		}
		ran += len(batch)
	}
	for deadline := time.Now().Add(8 * time.Hour); ran < *differential && time.Now().Before(deadline) && tried < 1000**differential; tried++ {
		line := mutated(rnd, lines, words)
		if seen[line] || strings.Contains(line, "sleep") || strings.Contains(line, "tail -f") {
			continue
		}
		seen[line] = true
		r := writes
		input, err := schemas.Encode(map[string]string{"command": line})
		require.NoError(t, err)
		v := p.Check(policy.Call{ToolName: "Bash", ActionType: schemas.ActionCommand, Input: input, Cwd: r.project, Project: r.project, Home: r.home})
		switch {
		case v.Containment == nil || v.Effect != policy.Allow && v.Effect != policy.Contain:
			continue
		case v.Containment.ReadOnly:
			line = strings.ReplaceAll(line, writes.top, reads.top)
			r = reads
		}
		if batches[r] = append(batches[r], line); len(batches[r]) == linesInContainer {
			run(r)
		}
	}
	for r := range batches {
		run(r)
	}
	t.Logf("ran %d lines of %d that were generated", ran, tried)
	assert.Zero(t, reached.Load(), "a line reached this machine")
	assert.GreaterOrEqual(t, ran, *differential)
	r := reads
	assert.NotContains(t, r.run("bash", "-c", "cat .env main.txt").out, marker)
	assert.Contains(t, r.sh("cat main.txt").out, "plain", "the containers print what they may")
}
