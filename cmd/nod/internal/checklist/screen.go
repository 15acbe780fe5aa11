package checklist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	tea "charm.land/bubbletea/v2"
)

// Show draws the lists on the whole screen of a terminal. The parameters in and out are the terminal's input
// and output.
func (l *Lists) Show(ctx context.Context, in io.Reader, out io.Writer) error {
	m := newModel(l)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	switch {
	case ctx.Err() != nil:
		return ErrLeft
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the lists broke down, please report it: %w", err)
	case err != nil:
		return fmt.Errorf("show the lists on this terminal: %w; TERM=dumb asks line by line", err)
	case !m.confirmed:
		return ErrLeft
	}
	return nil
}

// model is the screen's state. Only Update changes it.
type model struct {
	lists         *Lists
	width, height int

	at      int         // the index of the page on the screen; len(lists.Pages) for the summary
	page    page        // the page on the screen, or the items of the summary
	changes bool        // true if the summary has changes to confirm
	cursors map[int]int // for each page, the index of the item with the cursor
	list    scroll
	reading *text  // the text that covers the list: a detail or the keys; nil for none
	notice  string // the reply to the last key

	confirmed bool
}

// text is a text that covers the list, such as an item's change in full.
type text struct {
	title string
	lines []string
	scroll
}

func newModel(l *Lists) *model {
	m := &model{lists: l, cursors: map[int]int{}}
	m.enter(l.next(0, 1))
	return m
}

// enter goes to a page, or to the summary after the last page.
func (m *model) enter(at int, p page) {
	if at < 0 {
		m.notice = "This is the first list."
		return
	}
	m.at, m.page, m.list, m.changes = at, p, scroll{}, false
	if m.summing() {
		s := m.lists.Summarize()
		m.page, m.changes = page{&Page{Title: "Summary", Intro: "Nothing has been changed yet."}, s.Items}, s.Changes
	}
	if _, been := m.cursors[at]; !been && m.page.One {
		m.cursors[at] = slices.IndexFunc(m.page.items, func(i *Item) bool { return i.On })
	}
	m.cursors[at] = max(0, min(m.cursors[at], len(m.page.items)-1))
}

func (m *model) summing() bool { return m.at == len(m.lists.Pages) }

// item returns the item with the cursor, or nil if the list is empty.
func (m *model) item() *Item {
	if len(m.page.items) == 0 {
		return nil
	}
	return m.page.items[m.cursors[m.at]]
}

// Init does nothing, because the terminal reports its size by itself.
func (m *model) Init() tea.Cmd { return nil }

// Update handles one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		m.notice = ""
		cmd = m.press(msg.String())
	}
	m.layOut()
	return m, cmd
}

// View draws the screen.
func (m *model) View() tea.View {
	view := tea.NewView(m.draw())
	view.AltScreen, view.WindowTitle = true, m.lists.Title
	return view
}
