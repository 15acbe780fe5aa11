package example

import (
	"context"
	"slices"
	"sync"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Board is a notice board in memory. It has notes for people, and slips with their answers. It is safe
// for concurrent use, and keeps its content if a carrier ends.
type Board struct {
	mu    sync.Mutex
	notes []*Note
	slips []Slip
	left  chan struct{} // a channel that receives a value for each new slip
	fail  []error
}

// Note is a question to a person, or the reply to a slip.
type Note struct {
	ID, For, Text string
	Choices       []Choice
	about         string // the key of the request; empty if the note is a reply
	calls         int    // the number of identical calls that the note shows
}

// Choice is an answer that a note offers. A person chooses it with a slip whose text is Token.
type Choice struct {
	Kind  schemas.OptionKind
	Token string
}

// Slip is an answer that a person left under a note.
type Slip struct {
	By, Note, Says string
	calls          int // the number of calls that the note showed when the person left the slip
}

// NewBoard makes an empty board.
func NewBoard() *Board { return &Board{left: make(chan struct{}, 1)} }

// Leave puts a slip on the board. It stores in the slip the number of calls that the note shows now.
func (b *Board) Leave(s Slip) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.find(s.Note); n != nil {
		s.calls = n.calls
	}
	b.slips = append(b.slips, s)
	b.signal()
}

// Notes returns copies of a person's notes, oldest first.
func (b *Board) Notes(person string) []Note {
	b.mu.Lock()
	defer b.mu.Unlock()
	var theirs []Note
	for _, n := range b.notes {
		if n.For == person {
			theirs = append(theirs, *n)
		}
	}
	return theirs
}

// Fail makes the next attempt to pin or rewrite a note fail with err.
func (b *Board) Fail(err *people.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = append(b.fail, err)
}

func (b *Board) signal() {
	select {
	case b.left <- struct{}{}:
	default: // b.left already contains a value, so no second value is needed
	}
}

func (b *Board) failing() error {
	if len(b.fail) == 0 {
		return nil
	}
	err := b.fail[0]
	b.fail = b.fail[1:]
	return err
}

func (b *Board) pin(person string, n Note) (id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.failing(); err != nil {
		return "", err
	}
	n.ID, n.For = ref(len(b.notes)+1), person
	b.notes = append(b.notes, &n)
	return n.ID, nil
}

func (b *Board) find(id string) *Note {
	i := slices.IndexFunc(b.notes, func(n *Note) bool { return n.ID == id })
	if i < 0 {
		return nil
	}
	return b.notes[i]
}

func (b *Board) rewrite(id string, n Note) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.failing(); err != nil {
		return err
	}
	if old := b.find(id); old != nil { // do nothing if the note was taken down
		old.Text, old.Choices, old.calls = n.Text, n.Choices, n.calls
	}
	return nil
}

// about returns the key of the request that a note asks about, or "" for any other note.
func (b *Board) about(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.find(id); n != nil {
		return n.about
	}
	return ""
}

// next returns the oldest slip. If there is no slip, it waits for a slip. The slip stays on the board
// until the caller calls done.
func (b *Board) next(ctx context.Context) (Slip, error) {
	for {
		b.mu.Lock()
		if len(b.slips) > 0 {
			s := b.slips[0]
			b.mu.Unlock()
			return s, ctx.Err()
		}
		b.mu.Unlock()
		select {
		case <-b.left:
		case <-ctx.Done():
			return Slip{}, ctx.Err()
		}
	}
}

// done removes the oldest slip, s, and pins a reply for the person who left the slip. The parameter
// said is the reply's text.
func (b *Board) done(s Slip, said string) {
	b.mu.Lock()
	b.slips = b.slips[1:]
	b.mu.Unlock()
	b.tell(s.By, said)
}

// tell puts a note for one person on the board. It ignores errors, because the answer counts even if the person
// does not get the note.
func (b *Board) tell(person, text string) { _, _ = b.pin(person, Note{Text: text}) }
