package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The script .ci/run names the packages with tests that go test ./... leaves out or shortens. The tests of a
// package that is missing there would run nowhere in their long form.
func TestTheLongTestsRunInCI(t *testing.T) {
	script, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	packages := regexp.MustCompile(`(?m)^long_packages='(.*)'$`).FindStringSubmatch(string(script))
	require.Len(t, packages, 2)
	onDemand := regexp.MustCompile(`(?m)^on_demand='(.*)'$`).FindStringSubmatch(string(script)) // docs/testing.md has its command
	require.Len(t, onDemand, 2)
	require.Contains(t, string(script), "check \"$long_packages\" -skip \"^($on_demand)\\$\" -args -long\n", "it runs all the tests of these packages")

	want := map[string]bool{}
	long := longTests(t)
	require.NotEmpty(t, long)
	skipped := 0
	for test := range long {
		at, name, _ := strings.Cut(test, " ")
		want["./"+at] = true
		if name == onDemand[1] {
			skipped++
		}
	}
	require.Equal(t, 1, skipped, "on_demand names one test, which reads the flag -long")
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), strings.Fields(packages[1]), "the packages whose tests read the flag -long")
}

// longTests returns the tests, as "FOLDER NAME", that read the flag -long themselves or in a function of
// their folder.
func longTests(t *testing.T) map[string]bool {
	long := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || e.Name() == "testdata" {
			return err
		}
		files, err := filepath.Glob(filepath.Join(at, "*_test.go"))
		if err != nil {
			return err
		}
		uses := map[string]map[string]bool{}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				return err
			}
			maps.Copy(uses, usesOf(parsed))
		}
		for name := range uses {
			if strings.HasPrefix(name, "Test") && reaches(uses, name, map[string]bool{}) {
				long[path.Join(strings.TrimPrefix(filepath.ToSlash(at), "../../"))+" "+name] = true
			}
		}
		return nil
	}))
	return long
}

// usesOf returns, for each function of a file, the names that the function uses. A use of the flag -long has
// the name "-long".
func usesOf(file *ast.File) map[string]map[string]bool {
	uses := map[string]map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		names := map[string]bool{}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StarExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "long" {
					names["-long"] = true
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "rig" && (n.Sel.Name == "Long" || n.Sel.Name == "OnlyLong" || n.Sel.Name == "Times") {
					names["-long"] = true
				}
				names[n.Sel.Name] = true
			case *ast.Ident:
				names[n.Name] = true
			}
			return true
		})
		uses[f.Name.Name] = names
	}
	return uses
}

// reaches reports whether a function reads the flag, itself or through the functions that it names.
func reaches(uses map[string]map[string]bool, name string, seen map[string]bool) bool {
	if seen[name] {
		return false
	}
	seen[name] = true
	if uses[name]["-long"] {
		return true
	}
	for other := range uses[name] {
		if uses[other] != nil && reaches(uses, other, seen) {
			return true
		}
	}
	return false
}
