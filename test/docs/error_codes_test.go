package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// The reference has exactly one row for each error code of the messages, and no other rows.
func TestTheReferenceHasEveryErrorCode(t *testing.T) {
	var coded, rows []string
	for _, c := range regexp.MustCompile(`Code = "([A-Z_]+)"`).FindAllStringSubmatch(rig.Document(t, "schemas/errors.go"), -1) {
		coded = append(coded, c[1])
	}
	_, section, found := strings.Cut(rig.Document(t, "docs/reference/messages.md"), "\n## Error codes\n")
	require.True(t, found)
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		rows = append(rows, row[1])
	}
	slices.Sort(coded)
	slices.Sort(rows)
	require.NotEmpty(t, rows)
	require.Equal(t, coded, rows)
}
