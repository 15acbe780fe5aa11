package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// placedPattern matches the beginning of a rule that names its project.
var placedPattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]*(?:\((?s:.*)\))? +(?:in|at)\b`)

// parsePlaced compiles a rule that names its project, in the form in which nod prints remembered
// rules. It refuses a rule that could never cover a call.
func parsePlaced(text string) (Rule, error) {
	r, err := schemas.ParseRememberedRule(text)
	if err != nil {
		return Rule{}, err
	}
	t := tools.Named(r.Tool)
	for _, dir := range append([]string{r.Project}, r.Dirs...) {
		if pathname.Clean(dir) != dir || dir == "" {
			return Rule{}, fmt.Errorf("%q: the place %q is no full path: write it as /dir, without . or .. and without / at its end", text, dir)
		}
		if !pathname.Within(dir, r.Project) {
			return Rule{}, fmt.Errorf("%q: the directory %s is not in the project %s", text, dir, r.Project)
		}
	}
	switch {
	case t.Kind == tools.Shell && len(r.Argv) == 0:
		return Rule{}, fmt.Errorf("%q covers no command: name one, as in Bash(go test:*) in %s", text, schemas.ShellLine([]string{r.Project}))
	case r.Elsewhere && (t.Kind != tools.Shell || r.Prefix || len(r.Dirs) > 0):
		return Rule{}, fmt.Errorf("%q: only a whole command without :* and without a directory after at can run elsewhere", text)
	case t.Kind != tools.Shell && len(r.Dirs) > 0:
		return Rule{}, fmt.Errorf("%q: only a rule for a command has a directory after at", text)
	case t.Kind == tools.Edit && r.Path == "":
		return Rule{}, fmt.Errorf("%q covers no file: name one, or a directory with / at its end", text)
	case t.Kind == tools.Web:
		return Rule{}, fmt.Errorf("%q: a rule for a web address has no place: write %s(domain:example.com)", text, r.Tool)
	case r.Path != "" && !slices.Contains([]tools.Kind{tools.File, tools.Search, tools.Edit}, t.Kind):
		return Rule{}, fmt.Errorf("%q: nod knows no patterns for this tool: name the tool alone", text)
	case t.Kind == tools.Unknown && !tools.Rememberable(t.Name):
		return Rule{}, fmt.Errorf("%q: nod cannot keep this tool to a project, because its name does not say that it only reads: write %q to allow its calls everywhere", text, r.Tool)
	case r.Path != "" && pathname.Clean(r.Path) != strings.TrimSuffix(r.Path, "/"):
		return Rule{}, fmt.Errorf("%q: the path %q is no full path: write it as /dir/file, or /dir/ for all files below it", text, r.Path)
	}
	return Rule{Text: text, tool: t.Name, Placed: &r}, nil
}
