package shell

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table must agree with find on the number of words that follow each test. Otherwise nod would
// read an action as the value of a test.
func TestFindTakesTheWordsThatTheTableSays(t *testing.T) {
	if _, err := exec.LookPath("find"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("find is not installed")
		}
		t.Skip("left out: find is not installed")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/7", nil, 0o600))
	values := map[string]string{"-regextype": "posix-basic", "-type": "f", "-xtype": "f", "-newermt": "2020-01-01", "-user": "0", "-group": "0"}
	says := func(args ...string) string {
		cmd := exec.Command("find", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C")
		out, _ := cmd.CombinedOutput() // most runs fail, because find does not expect the last word
		return string(out)
	}
	tried := 0
	for test, n := range findTests {
		if slices.Contains([]string{"!", "(", ")", ",", "-not", "-o", "-or", "-a", "-and", "-L", "-H", "-P"}, test) {
			continue // these words join tests, or must precede the paths
		}
		value := values[test]
		if value == "" {
			value = "7"
		}
		args := append([]string{".", "-maxdepth", "0", test}, slices.Repeat([]string{value}, n)...)
		tried++
		assert.NotContains(t, says(args...), "find:", "find %s", strings.Join(args, " "))
		assert.Contains(t, says(append(args, "8")...), "paths must precede expression: `8'", "find %s 8", strings.Join(args, " "))
		if n > 0 {
			assert.Contains(t, says(args[:len(args)-1]...), "find: ", "%s needs its value", test)
		}
	}
	assert.Greater(t, tried, 35)
}
