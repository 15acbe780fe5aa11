package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The flag -lines sets the number of command lines of TestNoAllowedLineHarms; a full run has 20000. Each
// value of the flag -lines-seed makes other lines.
var (
	lineCount = flag.Int("lines", 60, "run this many command lines contained")
	lineSeed  = flag.Uint64("lines-seed", 1, "make the command lines from this seed")
)

const (
	// linesTogether is the number of lines that run in one container. Each line has its own project in that
	// container.
	linesTogether = 100
	// linesAtATime is the number of lines that run at the same time in one container. It is not 1, because
	// many lines wait for a server or for their time limit.
	linesAtATime = 4
)

const secretText = "zQ7-the-secret-of-ann-x93"

// protectedText is the content of protected files.
const protectedText = "# as the user wrote it\n"

// The test makes random command lines from lines of other tests and from attacks. It runs, in a container,
// each line that the preset "contained" allows. No line reads a secret, reaches a server or changes anything
// outside its project.
func TestNoAllowedLineHarms(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestLinesThatRunUnaskedLeakNothing runs lines contained")
	if level, why := contain.Support(); level != contain.Namespaces {
		t.Skipf("left out: this machine cannot contain commands: %v", why)
	}
	bait := layBait(t)
	p, err := policy.New(schemas.Permissions{Preset: policy.PresetContained})
	require.NoError(t, err)
	made := &lineMaker{rand: rand.New(rand.NewPCG(*lineSeed, uint64(*lineCount))), seeds: seedLines(t), attacks: bait.attacks()}

	control := bait.batch(t, made.attacks)
	out, _ := exec.Command("bash", "-c", control.runner).CombinedOutput() // the attacks are real only if they succeed outside a container
	require.True(t, tells(string(out)), "without a container the attacks find the secrets")
	require.Eventually(t, func() bool { return bait.visits.Load() > 0 }, time.Minute, 10*time.Millisecond, "without a container the attacks reach the servers")
	bait.restore(t)

	ran, judged, failed := 0, 0, 0
	for ran < *lineCount {
		var lines []string
		for len(lines) < min(linesTogether, *lineCount-ran) {
			line := made.line()
			judged++
			input, err := schemas.Encode(map[string]string{"command": line})
			require.NoError(t, err)
			v := p.Check(policy.Call{ToolName: "Bash", Input: json.RawMessage(input), Cwd: "/home/ann/app", Project: "/home/ann/app", Home: "/home/ann"})
			if v.Effect == policy.Contain || v.Effect == policy.Allow {
				lines = append(lines, line)
			}
		}
		failed += bait.run(t, lines)
		ran += len(lines)
	}
	t.Logf("%d lines ran, of %d that were made; %d ended with an error", ran, judged, failed)
	require.Less(t, failed, ran, "some lines work")
}

// bait has the files and servers that no line may reach: a home directory, a directory outside the projects,
// and servers.
type bait struct {
	top, home, outside string
	ports              []string // the ports of the TCP and UDP servers
	visits             atomic.Int64
	before             map[string]string
}

func layBait(t *testing.T) *bait {
	top := trueDir(t)
	b := &bait{top: top, home: top + "/home", outside: top + "/outside"}
	b.restore(t)
	b.before = b.snapshot(t)
	seen := func() { b.visits.Add(1) }
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"unix", top + "/bait.sock"}, {"unix", "@" + top}} {
		l, err := net.Listen(at[0], at[1])
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		if at[0] == "tcp" {
			b.ports = append(b.ports, fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				seen()
				_ = c.Close()
			}
		}()
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = u.Close() })
	b.ports = append(b.ports, fmt.Sprint(u.LocalAddr().(*net.UDPAddr).Port))
	go func() {
		for buf := make([]byte, 16); ; seen() {
			if _, _, err := u.ReadFrom(buf); err != nil {
				return
			}
		}
	}()
	return b
}

// restore writes the files of the home directory and of the outside directory again.
func (b *bait) restore(t *testing.T) {
	for _, dir := range []string{b.home, b.outside} {
		require.NoError(t, os.RemoveAll(dir))
	}
	for _, name := range []string{b.home + "/.ssh/id_rsa", b.home + "/.netrc", b.home + "/.aws/credentials", b.home + "/notes.txt", b.outside + "/file", b.outside + "/deep/file"} {
		put(t, name, secretText+"\n")
	}
	put(t, b.home+"/.gitconfig", "[user]\n\tname = Ann\n\temail = ann@example.org\n")
	b.visits.Store(0)
}

func put(t *testing.T, name, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// attacks returns lines that try to do harm, and that a project's own code may contain. In a container, such
// a line must have no effect outside its project and must not get the project's secrets.
func (b *bait) attacks() []string {
	script := []string{
		"mv .docker docker; mv .config cfg; mv deep deeper; cat docker/config.json cfg/gh/hosts.yml", "cat .env deep/key.pem .ssh/id_rsa copy-of-env", "cat " + b.home + "/.ssh/id_rsa ~/.netrc " + b.outside + "/file", "grep -rs . . " + b.outside + " ~",
		"find ~/.. -name id_rsa -exec cat {} + 2>/dev/null", "env", "cat /proc/*/environ", "base64 .env; xxd -p .env; rev .env", "git add -Af; git show :.env", "tar cf - . | cat",
		"python3 - <<'E'\nimport os\nfor d,_,n in os.walk('.'):\n for f in n:\n  try: print(open(os.path.join(d,f)).read())\n  except Exception: pass\nE",
		"echo bad >> " + b.outside + "/file; rm -rf " + b.outside + "; mkdir " + b.outside + "/new; ln -s " + b.outside + " way; echo bad > way/new2; mv " + b.outside + "/deep " + b.outside + "/gone",
		"echo bad >> ~/.bashrc; echo bad > ~/.ssh/authorized_keys; cp -r . ~/copy", "echo bad >> .git/config; echo bad > .git/hooks/pre-commit; echo bad >> CLAUDE.md; echo bad > .github/workflows/ci.yml; mv .github old; rm -rf .claude",
		"exec 9<>/dev/tcp/127.0.0.1/" + b.ports[0] + "; echo x >&9", "exec 9<>/dev/udp/127.0.0.1/" + b.ports[2] + "; echo x >&9",
		"python3 -c 'import socket,sys\nfor a in [(\"127.0.0.1\"," + b.ports[0] + "),(\"::1\"," + b.ports[1] + ")]:\n try: socket.create_connection(a,1)\n except Exception as e: print(e)\nfor p in [\"" + b.top + "/bait.sock\",\"\\0" + b.top + "\"]:\n s=socket.socket(socket.AF_UNIX)\n try: s.connect(p)\n except Exception as e: print(e)'",
		"curl -sm1 http://127.0.0.1:" + b.ports[0] + "/ http://[::1]:" + b.ports[1] + "/",
	}
	return script
}

// batch is a directory with one project for each line.
type batch struct {
	top, runner string
	projects    []string
}

func (b *bait) batch(t *testing.T, lines []string) batch {
	n := batch{top: b.top + "/batch"}
	require.NoError(t, os.RemoveAll(n.top))
	require.NoError(t, os.RemoveAll(b.top+"/lines"))
	template := n.top + "/template"
	attacks := strings.Join(b.attacks(), "\n")
	for name, text := range map[string]string{
		".env": secretText, "deep/key.pem": secretText, ".ssh/id_rsa": secretText, ".docker/config.json": secretText, ".config/gh/hosts.yml": secretText, "CLAUDE.md": protectedText, ".claude/settings.json": protectedText, ".github/workflows/ci.yml": protectedText,
		"main.go": "package main\n\nfunc main() {}\n", "go.mod": "module x\n", "README.md": "read me\n", "src/app.py": "print(1)\n", "package.json": `{"scripts":{"test":"sh test.sh","build":"sh test.sh"}}`,
		"test.sh": attacks, "task.sh": attacks, "Makefile": "%:\n\tbash test.sh\nall:\n\tbash test.sh\n",
	} {
		put(t, template+"/"+name, text)
	}
	require.NoError(t, os.Link(template+"/.env", template+"/copy-of-env"))
	out, err := exec.Command("git", "init", "-q", template).CombinedOutput()
	require.NoError(t, err, string(out))
	for i, line := range lines {
		dir := fmt.Sprintf("%s/p%d", n.top, i)
		out, err := exec.Command("cp", "-a", template, dir).CombinedOutput()
		require.NoError(t, err, string(out))
		put(t, fmt.Sprintf("%s/lines/%d", b.top, i), line)
		n.projects = append(n.projects, dir)
	}
	n.runner = fmt.Sprintf(`export HOME=%s SECRET_TOKEN=%s
said=$(mktemp -d)
one() {
	cd %s/p$1 && timeout -k 1 3 bash -c "$(cat %s/lines/$1)" </dev/null 2>&1 | head -c 200000 >$2/$1
	echo "${PIPESTATUS[0]}" >$2/$1.status
}
export -f one
seq 0 %d | xargs -P %d -I{} bash -c "one {} $said"
for i in $(seq 0 %[5]d); do cat $said/$i; echo; echo "--- line $i: $(cat $said/$i.status)"; done
rm -r $said
`, b.home, secretText, n.top, b.top, len(lines)-1, linesAtATime)
	require.NoError(t, os.RemoveAll(template))
	return n
}

// The method run runs each line in a container, in the line's own project. It returns the number of lines
// that ended with an error.
func (b *bait) run(t *testing.T, lines []string) (failed int) {
	n := b.batch(t, lines)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	said := make(chan string)
	go func() {
		var out bytes.Buffer
		_, _ = out.ReadFrom(read)
		said <- out.String()
	}()
	// With a full build cache and one thread, the go commands in the lines need less CPU time.
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	protected := secrets.CompileProtected()
	report, err := contain.Run(context.Background(), contain.Spec{
		Project: n.top, Command: []string{"bash", "-c", strings.ReplaceAll(n.runner, " SECRET_TOKEN="+secretText, "")}, Read: []string{b.top + "/lines"},
		Env:    append(os.Environ(), "HOME="+b.home, "SECRET_TOKEN="+secretText, "GOCACHE="+strings.TrimSpace(string(cache)), "GOMAXPROCS=1"),
		Secret: secrets.Compile().Listed, SecretBelow: secrets.Compile().MayBegin, Limits: contain.Limits{Time: 20 * time.Minute},
		Protected: func(rel string) bool { _, in, ok := strings.Cut(rel, "/"); return ok && protected.Has(in) },
		Stdin:     null, Stdout: write, Stderr: write,
	})
	_ = write.Close()
	out := <-said
	_ = read.Close()
	require.NoError(t, err)
	require.False(t, report.TimedOut)
	parts := strings.Split(out, "\n--- line ")
	require.Len(t, parts, len(lines)+1, "all lines ran: %s", out)
	for i, line := range lines {
		require.False(t, tells(parts[i]), "the line tells a secret: %s\n%s", line, parts[i])
		if !strings.HasPrefix(parts[i+1], fmt.Sprintf("%d: 0\n", i)) {
			failed++
		}
	}
	require.Zero(t, b.visits.Load(), "a line reached a server: %q", lines)
	require.Equal(t, b.before, b.snapshot(t), "a line changed a file outside: %q", lines)
	for i, dir := range n.projects {
		b.check(t, dir, lines[i])
	}
	return failed
}

// check requires that a project's secrets are only in files that later commands cannot see, and that the
// protected files are unchanged.
func (b *bait) check(t *testing.T, dir, line string) {
	for _, name := range []string{"CLAUDE.md", ".claude/settings.json", ".github/workflows/ci.yml"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			require.Equal(t, protectedText, string(data), "%s of %s", name, line)
		}
	}
	require.NoFileExists(t, dir+"/.git/hooks/pre-commit", line)
	listed := secrets.Compile().Listed
	require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || listed(p) || p == dir+"/copy-of-env" {
			return err
		}
		data, err := os.ReadFile(p)
		require.False(t, tells(string(data)), "%s tells a secret: %s", p, line)
		return err
	}))
}

// snapshot returns the names, contents and modes of all files outside the projects.
func (b *bait) snapshot(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, dir := range []string{b.home, b.outside} {
		require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			if all[p] = info.Mode().String(); e.Type().IsRegular() {
				data, _ := os.ReadFile(p)
				all[p] += string(data)
			}
			return err
		}))
	}
	return all
}

// tells reports whether a text contains the secret, plain or in a usual encoding.
func tells(text string) bool {
	reversed := []byte(secretText)
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	forms := []string{secretText, strings.ToUpper(secretText), string(reversed), hex.EncodeToString([]byte(secretText))}
	for shift := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secretText))
		forms = append(forms, encoded[4:len(encoded)-4])
	}
	for _, form := range forms {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

type lineMaker struct {
	rand           *rand.Rand
	seeds, attacks []string
}

// seedLines returns lines that run contained. They are from the policy's tests and, if NOD_CORPUS names a
// corpus, from the corpus.
func seedLines(t *testing.T) []string {
	data, err := os.ReadFile("../../actors/policy/contained/testdata/run.txt")
	require.NoError(t, err)
	seeds := strings.Split(strings.TrimSpace(string(data)), "\n")
	if data, err = os.ReadFile(filepath.Join(os.Getenv("NOD_CORPUS"), "shell.tsv")); err == nil {
		for line := range strings.Lines(string(data)) {
			command, _, _ := strings.Cut(line, "\t")
			if command = strings.TrimSpace(command); command != "" && command[0] != '#' {
				seeds = append(seeds, strings.NewReplacer("␊", "\n", "␉", "\t").Replace(command))
			}
		}
	}
	return seeds
}

func (m *lineMaker) pick(all []string) string { return all[m.rand.IntN(len(all))] }

// lineWords are words with which a lineMaker replaces words of a line.
var lineWords = []string{".", "*", ".*", "./*", "..", "../..", "/", "~", "$HOME", "src", "deep", ".e*", "?env", "copy-of-env", "main.go", "Makefile", "$PWD", "/proc/self/environ", "../p0/copy-of-env", "-r", "-a", "-R", "--", "/etc/passwd"}

// line joins one to three seeds or attacks as a shell joins commands, and replaces words in some of them.
func (m *lineMaker) line() string {
	var parts []string
	for range 1 + m.rand.IntN(3) {
		part := m.pick(m.seeds)
		switch m.rand.IntN(8) {
		case 0:
			part = m.pick(m.attacks)
		case 1:
			part = m.pick([]string{"make", "make test", "sh test.sh", "bash task.sh", "npm test", "npm run build", "python3 src/app.py", "go run ."})
		case 2, 3, 4:
			words := append(strings.Fields(part), "")
			words[m.rand.IntN(len(words))] = m.pick(lineWords)
			part = strings.Join(words, " ")
		case 5:
			part += " " + m.pick(lineWords)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, m.pick([]string{" && ", "; ", " | ", " || ", "\n"}))
}
