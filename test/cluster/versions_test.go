package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// versions has the programs of three versions of nod. The present one is rig.Binary.
type versions struct{ previous, present, next string }

// builtVersions builds the previous and the next version, once for all tests.
var builtVersions = sync.OnceValues(func() (v versions, err error) {
	dir := filepath.Dir(rig.Binary)
	v = versions{filepath.Join(dir, "nod-previous"), rig.Binary, filepath.Join(dir, "nod-next")}
	if err := buildPrevious(dir, v.previous); err != nil {
		return v, err
	}
	return v, buildNext(dir, v.next)
})

// threeVersions returns the programs of three versions. If the git history does not contain the previous
// version, it skips the test.
func threeVersions(t *testing.T) versions {
	v, err := builtVersions()
	if errors.Is(err, errNoHistory) {
		t.Skip("left out:", err)
	}
	require.NoError(t, err)
	return v
}

var errNoHistory = errors.New("the git history does not have the commit in testdata/previous-version (a shallow clone or an archive)")

// previousVersion is the version that the previous program reports. The present program is built without a
// tag.
const previousVersion = "0.1.0"

// buildPrevious builds nod from the commit in testdata/previous-version.
func buildPrevious(dir, program string) error {
	commit, err := os.ReadFile("testdata/previous-version")
	if err != nil {
		return err
	}
	// The checkout may belong to another user than the user of the tests, and git would then refuse to read
	// it.
	git := exec.Command("git", "-c", "safe.directory=*", "archive", strings.TrimSpace(string(commit)))
	git.Dir = "../.."
	archive, err := git.Output()
	if err != nil {
		return errNoHistory
	}
	source := filepath.Join(dir, "previous")
	if err := unpack(archive, source); err != nil {
		return err
	}
	// The tag gives this build its version.
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "previous"}, {"tag", "v" + previousVersion}} {
		git := exec.Command("git", append([]string{"-c", "user.name=nod", "-c", "user.email=nod@localhost", "-c", "commit.gpgsign=false"}, args...)...)
		git.Dir = source
		if out, err := git.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s in %s: %w\n%s", args[0], source, err, out)
		}
	}
	return goBuild(source, "-buildvcs=true", "-trimpath", "-o", program, "./cmd/nod") // -trimpath keeps the directory out of the build cache's key
}

func unpack(archive []byte, into string) error {
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		path := filepath.Join(into, h.Name)
		data, err := io.ReadAll(files)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			return err
		}
	}
}

// newFields lists the changes of the next version. They add conditions, which only engines of the next
// version know, to a pending record and to a grant.
var newFields = []struct{ file, old, new string }{
	{"schemas/record.go", "\tDecision   *Decision `json:\"decision\"`\n", "\tDecision   *Decision `json:\"decision\"`\n\tOnlyOn string `json:\"only_on,omitempty\"`\n"},
	{"schemas/grant.go", "\tScope     Scope  `json:\"scope\"`\n", "\tScope     Scope  `json:\"scope\"`\n\tOnlyOn string `json:\"only_on,omitempty\"`\n"},
	{"actors/engine/create.go", "\trec.OnDisk, rec.Trace = s.plan.onDisk, s.trace.keep()\n", "\trec.OnDisk, rec.Trace = s.plan.onDisk, s.trace.keep()\n\trec.OnlyOn = \"tuesdays\"\n"},
	{"actors/engine/grants.go", "\tif seconds > 0 {\n", "\tg.OnlyOn = \"tuesdays\"\n\tif seconds > 0 {\n"},
}

// newFields replaces lines of the present source. This test fails as soon as one of these lines changes,
// because the test of mixed versions runs only with -long.
func TestNewFieldsFitToTheSource(t *testing.T) {
	for _, f := range newFields {
		source, err := os.ReadFile(filepath.Join("../..", f.file))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(source), f.old), f.file)
	}
}

// onlyOn is the new field in a stored record or grant.
const onlyOn = `"only_on":"tuesdays"`

// buildNext builds the present source with the changes in newFields.
func buildNext(dir, program string) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, f := range newFields {
		path, changed := filepath.Join(root, f.file), filepath.Join(dir, filepath.Base(f.file))
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Count(string(source), f.old) != 1 {
			return errors.New("newFields no longer fits to " + f.file)
		}
		if err := os.WriteFile(changed, []byte(strings.Replace(string(source), f.old, f.new, 1)), 0o600); err != nil {
			return err
		}
		overlay.Replace[path] = changed
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return err
	}
	return goBuild(root, "-buildvcs=false", "-overlay", list, "-o", program, "./cmd/nod")
}

func goBuild(dir string, args ...string) error {
	build := exec.Command("go", append([]string{"build"}, args...)...)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build nod in %s: %w\n%s", dir, err, out)
	}
	return nil
}
