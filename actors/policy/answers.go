package policy

import (
	"strings"
	"sync"
)

// Answers are remembered answers, of which there may be many, found by the words of a
// command. They may be used by several callers at once.
type Answers struct {
	all []Always

	index   sync.Once
	byWords map[string][]int // places of answers for commands, by all their words
	longest int              // how many words one has at most
	others  []int            // places of the other answers
}

// NewAnswers keeps the list, which must not change.
func NewAnswers(all []Always) *Answers { return &Answers{all: all} }

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

// wordEnd ends a word in a key. Words that contain it can only make candidates that
// do not match.
const wordEnd = "\x00"

// commands are the places of the answers whose words a command begins with.
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

// tools are the places of the answers that are for no command.
func (a *Answers) tools() []int {
	a.index.Do(a.build)
	return a.others
}

// Len is how many there are.
func (a *Answers) Len() int { return len(a.all) }
