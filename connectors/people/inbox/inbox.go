// Package inbox is the terminal's screen of all that waits for an answer: a
// list, the selected request whole, and keys that answer it. A key decides only
// about what has been on the screen for a moment. Nothing is allowed of which a
// row has not been in view, nor while nod cannot be reached.
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

// Options say whose screen it is and where its answers go.
type Options struct {
	Desk            people.Desk
	StandingAnswers StandingAnswers // nil where standing answers cannot be listed
	UserID          string          // who answers, as the channel vouches for
	ClientID        string          // of this screen, where it holds a session's input lock
	Note            string          // said on the screen at all times; may be empty
}

// Screen is one terminal's inbox.
type Screen struct {
	model   *model
	program *tea.Program
}

// New makes a screen on a terminal, which Run takes over until ctx ends.
func New(ctx context.Context, in io.Reader, out io.Writer, o Options) *Screen {
	m := newModel(ctx, o, time.Now, func(d time.Duration, msg tea.Msg) tea.Cmd {
		return tea.Tick(d, func(time.Time) tea.Msg { return msg })
	})
	return &Screen{m, tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())}
}

// Show brings a version of a request to the screen. It may be called at any
// time from any goroutine: before Run it waits for that, and after it does
// nothing.
func (s *Screen) Show(p schemas.Prompt) { s.program.Send(shownMsg{p}) }

// Run shows the inbox until its user closes it or the context ends, and lets go
// of what it held. Answers on their way are waited for unless the user insists:
// the error then says that they are not confirmed.
func (s *Screen) Run() error {
	_, err := s.program.Run()
	s.model.releaseLock()
	switch {
	case s.model.sending() > 0:
		return errors.New("an answer is not confirmed: look at its request with nod show before you answer anew")
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the inbox broke down, please report it: %w", err)
	case errors.Is(err, tea.ErrProgramKilled): // the context ended
		return nil
	case err != nil:
		return fmt.Errorf("show the inbox on this terminal: %w", err)
	}
	return nil
}
