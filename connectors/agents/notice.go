package agents

import (
	"strings"
	"unicode"

	"github.com/nodbus/nod/schemas"
)

// DescribeNotice returns a notice as one line for an agent or its user.
func DescribeNotice(n schemas.Notice) string {
	return "nod: " + strings.Join(strings.FieldsFunc(n.Text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}
