package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/nodbus/nod/connectors/people"
)

// coloured reports whether nod may write colours to w: w must be a terminal, NO_COLOR must not be set,
// and TERM must not be dumb.
func coloured(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// printParts writes parts at the width of textWidth, with colours if coloured(w).
func (e *env) printParts(w io.Writer, parts []people.Part) {
	fmt.Fprint(w, e.formatParts(parts, coloured(w)))
}

// formatParts formats parts so that their lines fit the width of textWidth.
func (e *env) formatParts(parts []people.Part, colours bool) string {
	var text strings.Builder
	for _, row := range people.Rows(parts, e.textWidth()) {
		if colours {
			text.WriteString(row.Paint(people.ANSI))
		} else {
			text.WriteString(row.Text)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// painter returns the Painter for text that is written to w.
func painter(w io.Writer) people.Painter {
	if coloured(w) {
		return people.ANSI
	}
	return people.Plain
}
