package contain

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asUser makes contained commands use the home directory and the toolchains of the user who runs the
// test.
func (r *rig) asUser() {
	home, err := os.UserHomeDir()
	require.NoError(r.t, err)
	r.change = func(o *order) {
		o.Spec.Env = append(o.Spec.Env, "HOME="+home, "PATH="+os.Getenv("PATH"))
		for _, name := range append(toolVariables, cacheVariables...) {
			if v := os.Getenv(name); v != "" {
				o.Spec.Env = append(o.Spec.Env, name+"="+v)
			}
		}
	}
}

func needProgram(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := osexec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("the test needs %s, and it does not run here: %v %s", name, err, out)
	}
}

func TestProjectsTestThemselvesInside(t *testing.T) {
	for _, c := range []struct {
		program string
		version string
		files   map[string]string
		command string
	}{
		{"make", "--version", map[string]string{"Makefile": "test: out\n\tgrep -q built out\nout:\n\techo built > $@\n"}, "make test"},
		{"python3", "--version", map[string]string{
			"pkg/__init__.py":   "def f(): return 42\n",
			"tests/test_pkg.py": "import unittest, tempfile, subprocess, multiprocessing\nfrom pkg import f\nclass T(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(), 42)\n    def test_tools(self):\n        with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').close()\n        self.assertEqual(subprocess.check_output(['echo', 'x']), b'x\\n')\n        with multiprocessing.Pool(2) as p: self.assertEqual(p.map(abs, [-1]), [1])\n",
			"tests/__init__.py": "",
		}, "python3 -m unittest discover -q"},
		{"node", "--version", map[string]string{
			"package.json": `{"name": "p", "version": "1.0.0", "scripts": {"test": "node --test"}}`,
			"a.test.js":    "const t = require('node:test'); const http = require('http'); const assert = require('assert');\nt('serves', async () => { const s = http.createServer((q, r) => r.end('ok')); await new Promise(r => s.listen(0, '127.0.0.1', r)); const a = await fetch('http://127.0.0.1:' + s.address().port); assert.equal(await a.text(), 'ok'); s.close(); s.closeAllConnections(); });\n",
		}, "npm test"},
		{"go", "version", map[string]string{
			"go.mod":    "module example.com/p\n\ngo 1.26\n",
			"p.go":      "package p\n\nfunc F() int { return 42 }\n",
			"p_test.go": "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestF(t *testing.T) {\n\tif F() != 42 || os.WriteFile(t.TempDir()+\"/x\", nil, 0o600) != nil {\n\t\tt.Fatal()\n\t}\n}\n",
		}, "go test ./..."},
		{"cargo", "--version", map[string]string{
			"Cargo.toml": "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"src/lib.rs": "pub fn f() -> i32 { 42 }\n#[test]\nfn t() { assert_eq!(f(), 42) }\n",
		}, "cargo test --offline -q --lib"},
	} {
		t.Run(c.program, func(t *testing.T) {
			needProgram(t, c.program, c.version)
			r := newRig(t)
			r.asUser()
			for name, content := range c.files {
				r.file(name, content)
			}
			res := r.sh(c.command)
			assert.Zero(t, res.code, "%s%s", res.out, res.err)
			assert.Empty(t, res.Undone)
			left, err := filepath.Glob(r.home + "/*")
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}
