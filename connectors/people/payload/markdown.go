package payload

import (
	"regexp"
	"strings"
)

var (
	heading  = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+`)
	listItem = regexp.MustCompile(`^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?`)
	fence    = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	inline   = regexp.MustCompile("`[^`]+`|\\*\\*[^*]+\\*\\*|__[^_]+__")
)

// Markdown returns the styles of a text in Markdown: headings, bold words, code, the marks of lists and
// quotations. A link remains plain text.
func Markdown(text string) []Span {
	styles := make([]Style, len(text))
	at, closing := 0, "" // closing is the fence that ends the current block of code
	for line := range strings.Lines(text) {
		end := at + len(strings.TrimRight(line, "\r\n"))
		switch mark := fence.FindStringSubmatch(line); {
		case closing != "" && mark != nil && strings.HasPrefix(mark[1], closing) && strings.TrimSpace(line) == mark[1]:
			paint(styles, at, end, Comment)
			closing = ""
		case closing != "":
			paint(styles, at, end, Quoted)
		case mark != nil:
			paint(styles, at, end, Comment)
			closing = mark[1]
		default:
			paintLine(styles[at:end], text[at:end])
		}
		at += len(line)
	}
	return spans(styles)
}

// paintLine styles one line that is not in a block of code.
func paintLine(styles []Style, line string) {
	from := 0
	if mark := heading.FindString(line); mark != "" {
		paint(styles, 0, len(mark), Comment)
		paint(styles, len(mark), len(line), Key)
		return
	}
	if mark := listItem.FindString(line); mark != "" {
		paint(styles, 0, len(mark), Operator)
		from = len(mark)
	} else if strings.HasPrefix(line, ">") {
		paint(styles, 0, 1, Comment)
		from = 1
	}
	for _, found := range inline.FindAllStringIndex(line[from:], -1) {
		style := Key
		if line[from+found[0]] == '`' {
			style = Quoted
		}
		paint(styles, from+found[0], from+found[1], style)
	}
}
