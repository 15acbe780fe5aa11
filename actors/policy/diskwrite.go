package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
)

// writesFile is the reason of a verdict on a tool that writes one or more files.
const writesFile = "writes a file"

// maxReplaced bounds, in bytes, the files whose lines DescribeWrite counts.
const maxReplaced = 1 << 20

// DescribeWrite makes the reason "writes a file" of a verdict more precise: the call creates the
// file, or replaces one with so many lines. The reason stays if the call does not write a whole
// file, if the path is unknown, or if the file cannot be read. It describes the disk at the time of
// the request: the file may change before a person answers.
func (ThisDisk) DescribeWrite(c Call, v *Verdict) {
	at := slices.Index(v.Reasons, writesFile)
	if at < 0 {
		return
	}
	effect := writeEffect(c)
	if effect == "" {
		return
	}
	v.Reasons, v.Targets = slices.Clone(v.Reasons), slices.Clone(v.Targets)
	v.Reasons[at] = effect
	for i := range v.Targets {
		if v.Targets[i].Does == writesFile {
			v.Targets[i].Does = effect
		}
	}
}

// writeEffect describes the effect of a call that writes a whole file. It returns "" for every
// other call, and if the file cannot be read.
func writeEffect(c Call) string {
	in, err := tools.ReadInput(c.Input)
	if err != nil {
		return ""
	}
	tool := tools.Named(c.ToolName)
	paths, known := in.FilePaths(tool)
	_, whole := in.Text("content", "contents", "file_text")
	if !known || !whole || len(paths) != 1 || tool.Kind != tools.Edit || in["old_string"] != nil || in["edits"] != nil {
		return ""
	}
	loc := pathname.Locate(c.Cwd, c.Project, c.Home)
	files := loc.Resolve(paths[0])
	if len(files) != 1 {
		return ""
	}
	lines, err := countLines(files[0])
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "creates a file"
	case err != nil:
		return ""
	case lines == 1:
		return "replaces a file of 1 line"
	}
	return fmt.Sprintf("replaces a file of %d lines", lines)
}

var errNotCounted = errors.New("not a regular file, or larger than 1 MiB")

// countLines returns the number of lines of a regular file. It does not wait for a named pipe.
func countLines(file string) (int, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxReplaced {
		return 0, errors.Join(errNotCounted, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxReplaced))
	if err != nil {
		return 0, err
	}
	n := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n, nil
}

// obeyed reports whether other programs run or obey one of the files, such as a workflow of a build
// server, a hook or an agent's settings.
func (ev *evaluation) obeyed(paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return slices.ContainsFunc(ev.location.Resolve(p), func(full string) bool {
			rel := strings.TrimPrefix(ev.location.Relative(full), "/")
			return rel != "" && ev.pol.protected.Has(rel)
		})
	})
}
