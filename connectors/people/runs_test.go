package people

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/schemas"
)

func TestAContainedRunIsDescribedInOneLine(t *testing.T) {
	p := schemas.Prompt{}
	assert.Empty(t, RunText(&p))
	p.Run = &schemas.ContainedRun{}
	assert.Equal(t, "may run contained, has not started", RunText(&p))
	p.Run.RunID = "r"
	assert.Equal(t, "started contained, has not reported its end", RunText(&p))
	p.Run.Report = &schemas.RunReport{ExitCode: 1, Changes: 2, Changed: []string{"a\x1b.go", "b"}, Refused: []string{"x.io:443"}, Partial: true}
	text := RunText(&p)
	assert.Contains(t, text, "ran contained: exit code 1, 2 files changed (")
	assert.Contains(t, text, "; refused: x.io:443; the lists are not complete")
	assert.NotContains(t, text, "\x1b")
	var tally RunTally
	assert.Empty(t, tally.Text())
	assert.NoError(t, tally.Add([]schemas.Prompt{p, {}}))
	assert.NoError(t, tally.Add([]schemas.Prompt{p}))
	assert.Equal(t, "2 calls contained, 2 failed; 4 files changed; 1 host refused", tally.Text())
}
