package policy

import (
	"strings"
	"sync"

	"github.com/nodbus/nod/schemas"
)

// Answers is a long list of remembered rules, which are allow rules made by people's lasting
// answers. The list is indexed by the words of the rules' commands, and safe for concurrent use.
type Answers struct {
	all         []schemas.RememberedRule
	sessionOnly bool // the answers were offered for one session only, and may cover calls that other answers never cover

	index   sync.Once
	byWords map[string][]int // the rules for commands, as indexes into the field all; a key is the words of a command, each followed by wordEnd
	longest int              // the number of words of the longest command in byWords
	others  []int            // the other rules, as indexes into the field all
}

// NewAnswers returns an index of a list of remembered rules. It does not copy the slice, so the caller must
// not change the slice afterwards.
func NewAnswers(all []schemas.RememberedRule) *Answers { return &Answers{all: all} }

// NewSessionAnswers is like NewAnswers, but its rules come from answers that were offered for one session
// only. The caller must apply the rules only to calls of that session.
func NewSessionAnswers(all []schemas.RememberedRule) *Answers {
	return &Answers{all: all, sessionOnly: true}
}

func (a *Answers) build() {
	a.byWords = map[string][]int{}
	for i := range a.all {
		words := a.all[i].Argv
		if len(words) == 0 {
			a.others = append(a.others, i)
			continue
		}
		key := strings.Join(words, wordEnd) + wordEnd
		a.byWords[key] = append(a.byWords[key], i)
		a.longest = max(a.longest, len(words))
	}
}

// wordEnd ends each word in a key of byWords. If a word itself contains wordEnd, two commands
// may have the same key, so coversArgv compares the words again.
const wordEnd = "\x00"

// commands returns the indexes of the rules whose command is a prefix of argv, those with fewer words first.
func (a *Answers) commands(argv []string) (places []int) {
	a.index.Do(a.build)
	var key strings.Builder
	for _, word := range argv[:min(a.longest, len(argv))] {
		key.WriteString(word)
		key.WriteString(wordEnd)
		places = append(places, a.byWords[key.String()]...)
	}
	return places
}

func (a *Answers) tools() []int {
	a.index.Do(a.build)
	return a.others
}

// Len returns the number of remembered rules.
func (a *Answers) Len() int { return len(a.all) }
