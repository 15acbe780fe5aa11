package people

import "github.com/nodbus/nod/connectors/people/payload"

// sgr contains the terminal attributes of each style. They are the sixteen colours of the user's
// terminal theme, without backgrounds, so that text is readable in every theme.
var sgr = map[payload.Style]string{
	payload.Command: "1", payload.Flag: "36", payload.Quoted: "32", payload.Variable: "35", payload.Operator: "33",
	payload.Comment: "2", payload.Key: "1", payload.Host: "1;4",
	payload.Added: "32", payload.Removed: "31", payload.AddedWord: "1;4;32", payload.RemovedWord: "1;4;31",
	payload.Faint: "2", payload.RiskLow: "32", payload.RiskMedium: "33", payload.RiskHigh: "1;31", payload.Mark: "7",
}

// ANSI returns s with the terminal's colours for a style. s must be safe to show; see Line.
func ANSI(style payload.Style, s string) string {
	if codes := sgr[style]; codes != "" {
		return "\x1b[" + codes + "m" + s + "\x1b[0m"
	}
	return s
}
