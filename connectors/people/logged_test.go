package people

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

// If the log has a request without its input, lists and the full text say what was asked, and whether the
// input was not logged or not found.
func TestARequestOfTheLogSaysWhatWasAsked(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 3, 9, 30, 0, 0, time.UTC)
	for want, l := range map[string]schemas.LoggedRequest{
		"Bash (its input was not logged)":                                   {ToolName: "Bash"},
		"a question or a permission (its text was not logged)":              {},
		"Bash (nod did not find its input in the log)":                      {ToolName: "Bash", QuestionNotFound: true},
		"a question or a permission (nod did not find its text in the log)": {QuestionNotFound: true},
	} {
		l.SessionID, l.PendingID, l.Agent, l.AskedAt = "S", "one", "ada", at
		l.Decided = &schemas.LoggedDecision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "web"}, At: at}
		parts := LoggedParts(&l)
		assert.Equal(t, want, LoggedSummary(&l, 100))
		assert.Equal(t, []string{want}, parts[0].Lines)
		assert.Contains(t, parts[1].Lines[0], "Denied")
		payloads := assert.Contains
		if l.QuestionNotFound {
			payloads = assert.NotContains
		}
		payloads(t, parts[2].Lines[1], "log.payloads")
	}
}
