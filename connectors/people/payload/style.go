// Package payload finds the meaningful pieces of a payload: the words of a command line, the changed
// words of an edit, the host of an address, the keys of JSON. It changes no byte of the payload.
// Package people makes the result safe to show, and each channel chooses the colours.
package payload

// Style is the meaning of a piece of a payload.
type Style string

// The styles of the pieces of a payload.
const (
	Plain       Style = ""
	Command     Style = "command"      // the name of a program
	Flag        Style = "flag"         // an option of a program
	Quoted      Style = "quoted"       // a string, or the text of a heredoc
	Variable    Style = "variable"     // an expansion of the shell, such as $HOME
	Operator    Style = "operator"     // a pipe, a redirection, a separator of commands
	Comment     Style = "comment"      // a comment, or punctuation that is not important
	Key         Style = "key"          // a field's name in JSON
	Host        Style = "host"         // the host in an address
	Added       Style = "added"        // a line that an edit adds
	Removed     Style = "removed"      // a line that an edit removes
	AddedWord   Style = "added-word"   // a word that an edit adds to a line
	RemovedWord Style = "removed-word" // a word that an edit removes from a line
	Faint       Style = "faint"        // text that a person need not read first
	RiskLow     Style = "risk-low"     // a low risk in a headline
	RiskMedium  Style = "risk-medium"
	RiskHigh    Style = "risk-high" // a high risk, or a risk that this version does not know
	Mark        Style = "mark"      // a mark that nod puts in place of a deceptive character
)

// Span is a piece of a text with one style. From and To are its offsets in bytes; To is after its
// last byte.
type Span struct {
	From, To int
	Style    Style
}

// spans combines neighbouring bytes of the same style to spans. The slice styles contains a style for
// each byte. Bytes without a style get no span.
func spans(styles []Style) (all []Span) {
	for from := 0; from < len(styles); {
		to := from + 1
		for to < len(styles) && styles[to] == styles[from] {
			to++
		}
		if styles[from] != Plain {
			all = append(all, Span{from, to, styles[from]})
		}
		from = to
	}
	return all
}

// paint sets the style of styles[from:to], limited to the length of styles.
func paint(styles []Style, from, to int, style Style) {
	for i := max(0, from); i < min(to, len(styles)); i++ {
		styles[i] = style
	}
}

// StyleAt returns the style of the byte at an offset. The spans in all must be in the order of
// the text.
func StyleAt(all []Span, offset int) Style {
	lo, hi := 0, len(all)
	for lo < hi {
		switch mid := (lo + hi) / 2; {
		case all[mid].To <= offset:
			lo = mid + 1
		case all[mid].From > offset:
			hi = mid
		default:
			return all[mid].Style
		}
	}
	return Plain
}
