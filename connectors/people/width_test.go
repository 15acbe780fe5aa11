package people

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A row ends between words, or else after a separator, and never in the middle of a name if a separator is
// in the second half of the row.
func TestRowsEndAtWordsAndSeparators(t *testing.T) {
	for _, c := range []struct {
		text  string
		words bool
		want  []string
	}{
		{"ssh web1 'cd /srv/shop && git pull'", false, []string{"ssh web1 'cd", " /srv/shop &&", " git pull'"}},
		{"cat /srv/shop/releases/current/app.log", false, []string{"cat /srv/shop/", "releases/", "current/app.log"}},
		{"https://x.test/a?b=c&d=e", false, []string{"https://x.test/", "a?b=c&d=e"}},
		{"get('https://x.test/a/b/c')", false, []string{"get('https://x.", "test/a/b/c')"}},
		{"then.get('https://x.test/i.js')", false, []string{"then.get(", "'https://x.", "test/i.js')"}},
		{"a_long_name_of_some_file.txt", false, []string{"a_long_name_of_", "some_file.txt"}},
		{"in (some /srv/shop/x)", false, []string{"in (some", " /srv/shop/x)"}},
		{"written (/srv/shop/x)", false, []string{"written (/srv/", "shop/x)"}},
		{"run --some-flag --other-flag", false, []string{"run --some-flag", " --other-flag"}},
		{strings.Repeat("x", 20), false, []string{strings.Repeat("x", 15), "xxxxx"}},
		{"x " + strings.Repeat("y", 20), false, []string{"x " + strings.Repeat("y", 13), "yyyyyyy"}},
		{"x " + strings.Repeat("y", 20), true, []string{"x", " " + strings.Repeat("y", 14), "yyyyyy"}},
		{"in /home/ann/projects/app, the project", true, []string{"in", " /home/ann/", "projects/app,", " the project"}},
		{"⟦180 line breaks⟧/⟦U+202E⟧/a", false, []string{"⟦180 line breaks⟧", "/⟦U+202E⟧/a"}},
	} {
		rows := wrap(c.text, 15, c.words)
		assert.Equal(t, c.want, rows, c.text)
		require.Equal(t, c.text, strings.Join(rows, ""))
	}
}
