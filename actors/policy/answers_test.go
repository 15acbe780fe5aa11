package policy

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// The method commands must return the rules whose command is a prefix of the given words. The method tools
// must return the rules that are not for commands.
func TestAnswersAreIndexedByTheirWords(t *testing.T) {
	all := []schemas.RememberedRule{
		{Tool: "Bash", Argv: []string{"make", "all"}}, {Tool: "Edit", Path: "/w/a.go"}, {Tool: "Bash", Argv: []string{"make"}, Prefix: true},
		{Tool: "Bash", Argv: []string{"make all"}}, {Tool: "Bash", Argv: []string{"make\x00all"}}, {Tool: "Glob"},
	}
	for i := range 1000 {
		all = append(all, schemas.RememberedRule{Tool: "Bash", Argv: []string{"make", fmt.Sprint("target", i)}})
	}
	a := NewAnswers(all)
	require.Equal(t, len(all), a.Len())
	require.Equal(t, []int{1, 5}, a.tools())
	for _, c := range []struct {
		argv []string
		want []int
	}{
		{nil, nil}, {[]string{"ls"}, nil}, {[]string{"make"}, []int{2}}, {[]string{"make", "none"}, []int{2}},
		{[]string{"make", "all"}, []int{2, 0, 4}}, // the words of rule 4 differ from those of rule 0, but give the same key
		{[]string{"make", "all", "-j"}, []int{2, 0, 4}}, {[]string{"make all"}, []int{3}},
		{[]string{"make", "target7"}, []int{2, 13}},
	} {
		require.Equal(t, c.want, a.commands(c.argv), "%q", c.argv)
	}
	require.Nil(t, NewAnswers(nil).commands([]string{"ls"}))
}
