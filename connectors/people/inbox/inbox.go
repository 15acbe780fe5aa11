// Package inbox is the terminal's screen for pending requests. It has a list, the full text of
// the selected request, and keys that answer the request. A key answers a request only after the
// request has been on the screen for a moment. A user can allow a request only after the screen
// has shown every row that people must see (people.Essential), and only while nod can be reached.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Options configure a Screen.
type Options struct {
	Desk            people.Desk
	StandingAnswers StandingAnswers // if nil, the screen has no list of standing answers
	UserID          string          // the user id, on the terminal connector, of the person who answers
	ClientID        string          // the id with which this screen acquires input locks
	Note            string          // a text that the screen always shows; may be empty
	Rings           bool            // ring the terminal for new requests while the user is away; see people.Ring
}

// Screen is the inbox on one terminal.
type Screen struct {
	model   *model
	program *tea.Program
}

// New creates a screen for the terminal with this input and output. The method Run ends when ctx ends.
func New(ctx context.Context, in io.Reader, out io.Writer, o Options) *Screen {
	m := newModel(ctx, o, time.Now, func(d time.Duration, msg tea.Msg) tea.Cmd {
		return tea.Tick(d, func(time.Time) tea.Msg { return msg })
	})
	return &Screen{m, tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())}
}

// Show sends a version of a request to the screen. Any goroutine may call Show. A call before Run blocks
// until Run starts; a call after Run has no effect.
func (s *Screen) Show(p schemas.Prompt) { s.program.Send(shownMsg{p}) }

// Run shows the inbox until its user closes it or the context ends. It then releases the input lock. If
// the user closes the inbox, Run waits until nod has replied to the answers. If the user closes the inbox
// a second time, or the context ends, Run stops waiting and returns an error about the unconfirmed
// answers.
func (s *Screen) Run() error {
	_, err := s.program.Run()
	s.model.releaseLock()
	switch {
	case s.model.sending() > 0:
		return errors.New("an answer is not confirmed: look at its request with nod show before you answer anew")
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the inbox broke down, please report it: %w", err)
	case errors.Is(err, tea.ErrProgramKilled): // ctx has ended before the user closed the inbox
		return nil
	case err != nil:
		return fmt.Errorf("show the inbox on this terminal: %w", err)
	}
	return nil
}
