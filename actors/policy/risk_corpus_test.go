package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// leastRisks has one letter for each line of the corpus, the first of the least risk that the line must have.
const leastRisks = "" +
	"llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllmmmmmmmmmmmmmmmhmmhhhhmmmmmmmmmmmmmmmmmmmmm" +
	"mmmmmmmmmmmhhhmmmmmmmmmmmmmmmmmmmmmmhhmmhmmhmmmmmmmmmmmmmmmmmmmmmhhhhhmmmmmmmmhmmmmmmmhhmmmmmmhmhhhmhmmmmmmmmmmmmmhhmmm" +
	"mmmmhmhmhhmhhhhhhhhhhhhhmhmmmmmhhmmmmmmhmmmmmmmmmmmmmmmmmmhhmmmmmmmmmmmmmmmmmmmmhhhhhhhhhhhhhhhhhhmmmmhmmmmmmmmmhmmmmhm" +
	"mmmmmmmmmmhhhhhhhhhhhhhmhhhhmhmmmmmmmmmmmmmmmmmmmmmmmmmmhmmmmmmhmmmmmmmmmhhmmmmmmmmmmmmmhhhmmhhhmmmmmmmmmmmhmmmmmhmmmmm"

// A change of the code that judges risks must not lower the risk of a line of the corpus.
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
