package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// leastRisks has the least risk of each line of the corpus, as its first letter.
const leastRisks = "" +
	"llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllmmmmmmmmmmmmmmmhmmhhhhmmmmmmmmmmmmmmmmmmmmm" +
	"mmmmmmmmmmmhhhmmmmmmmmmmmmmmmmmmmmmmhhmmhmmhmmmmmmmmmmmmmmmmmmmmmhhhhhmmmmmmmmhmmmmmmmhhmmmmmmhhhhhmhmmmmmmmmmmmmmhhmmm" +
	"mmmmhmhmhhmhhhhhhhhhhhhhmhmmmmmhhmmmmmmhmmmmmmmmmmmmmmmmmmhhmmmmmmmmmmmmmmmmmmmmhhhhhhhhhhhhhhhhhhmmmmhmmmmmmmmmhmmmmhm" +
	"mmmmmmmmmmhhhhhhhhhhhhhmhhhhmhmmmmmmmmmmmmmmmmmmmmmmmmmmhmmmmmmhmmmmmmmmmhhmmmmmmmmmmmmmhhhmmhhhmmmmmmmmmmmhmmmmmhmmmmm"

// A change of the words for a risk lowers the risk of no line of the corpus.
func TestNoRiskOfTheCorpusIsLower(t *testing.T) {
	t.Parallel()
	cases := shellCases(t)
	if len(cases) != len(leastRisks) {
		t.Skipf("left out: the corpus has %d lines, and the risks of %d are written down", len(cases), len(leastRisks))
	}
	p := preset(t, "readers")
	for i, c := range cases {
		v := p.Check(bash(t, c.command))
		const order = "lmh"
		assert.GreaterOrEqual(t, strings.Index(order, string(v.Risk)[:1]), strings.Index(order, leastRisks[i:i+1]), "%q: %s", c.command, v.Reasons)
	}
}
