package pathname

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Brackets that name single characters, such as those of .[dev], match one character and no longer name.
func TestBracketsThatMeanOneCharacter(t *testing.T) {
	t.Parallel()
	for pattern, names := range map[string]map[string]bool{
		".[dev]":       {".nod": false, ".env": false, ".e": true},
		".[dev,test]":  {".nod": false, ".env": false},
		"[a]":          {".env": false, "key": false},
		".[n]od":       {".nod": true},
		".en[v]":       {".env": true},
		".[n]*":        {".nod": true},
		".[!a]od":      {".nod": true, ".nood": true}, // other brackets may mean any text
		".[a-z]od":     {".nod": true},
		".[n][o]d":     {".nod": true},
		".[[:alpha:]]": {".nod": true},
		".[nod":        {".nod": true},
		".[]":          {".nod": true},
	} {
		for name, want := range names {
			assert.Equal(t, want, Overlap(pattern, name, true), "%s and %s", pattern, name)
		}
	}
}
