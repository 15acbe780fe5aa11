package policy

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Entries that contradict themselves would never take effect.
func TestCommandTable(t *testing.T) {
	for name, c := range newCommandTable() {
		words := strings.Fields(name)
		assert.Equal(t, name, strings.Join(words, " "), "one space between words")
		assert.LessOrEqual(t, len(words), 3, "%s: lookups stop after three words", name)
		assert.True(t, c.runner || !c.target, "%s: a target without a runner", name)
		assert.True(t, c.manyTargets || c.chooser == "", "%s: a chooser without targets", name)
		flags := c.short + c.value + c.tail + c.long
		assert.True(t, c.level != levelNone || flags == "" && c.operands == 0 && c.check == nil && c.special == nil, "%s: flags without a level", name)
		assert.True(t, c.special == nil || flags == "", "%s: flags that its own grammar ignores", name)
		for _, letter := range c.value + c.tail {
			assert.NotContains(t, c.short, string(letter), "%s: with and without a value", name)
		}
	}
}

// Only disk.go may look at files, so that the same call always gets the same verdict.
func TestOnlyDiskReadsFiles(t *testing.T) {
	require.NoError(t, filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || name == "disk.go" {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imp := range f.Imports {
			assert.False(t, slices.Contains([]string{`"os"`, `"io/fs"`, `"net"`, `"net/http"`, `"time"`, `"syscall"`, `"path/filepath"`, `"math/rand"`}, imp.Path.Value), "%s imports %s", name, imp.Path.Value)
		}
		return nil
	}))
}
