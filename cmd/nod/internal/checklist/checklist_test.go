package checklist

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// shop is a set of lists: several fruits, one bag, and a list whose items depend on the chosen bag.
type shop struct {
	fruit, bags, gifts []*Item
	*Lists
}

func newShop(fruit int) *shop {
	s := &shop{
		bags:  []*Item{{Text: "paper", On: true}, {Text: "linen"}},
		gifts: []*Item{{Text: "a bow"}},
	}
	for n := range fruit {
		s.fruit = append(s.fruit, &Item{Text: fmt.Sprintf("fruit %d of a kind with a long name", n+1), Notes: []string{"it is \x1b[31mred"}, Detail: strings.Repeat("a line\n", 60)})
	}
	s.fruit = append(s.fruit, &Item{Text: "sold out", Mark: "✓"})
	s.Lists = &Lists{
		Title: "shop",
		Pages: []Page{
			{Title: "Nothing here", Items: func() []*Item { return []*Item{{Text: "done", Mark: "✓"}} }},
			{Title: "Fruit", Intro: "Which fruit?", Items: func() []*Item { return s.fruit }},
			{Title: "Bag", One: true, Items: func() []*Item { return s.bags }},
			{Title: "Gift", Items: func() []*Item {
				if !s.bags[1].On {
					return nil
				}
				return s.gifts
			}},
		},
		Summarize: func() (sum Summary) {
			for _, i := range append(append(append([]*Item{}, s.fruit...), s.bags[1]), s.gifts...) {
				if i.On {
					sum.Items, sum.Changes = append(sum.Items, &Item{Text: "buy " + i.Text, Mark: "+", Detail: "in full: " + i.Text}), true
				}
			}
			return sum
		},
	}
	return s
}

func (s *shop) chosen() (all []string) {
	for _, items := range [][]*Item{s.fruit, s.bags, s.gifts} {
		for _, i := range items {
			if i.On {
				all = append(all, strings.TrimSuffix(i.Text, " of a kind with a long name"))
			}
		}
	}
	return all
}

func (s *shop) sized(width, height int) *model {
	m := newModel(s.Lists)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

func types(m *model, keys ...string) (quit bool) {
	for _, name := range keys {
		m.notice = ""
		cmd := m.press(name)
		m.layOut()
		quit = cmd != nil
	}
	return quit
}

func TestKeysChooseAndConfirm(t *testing.T) {
	for name, c := range map[string]struct {
		keys      []string
		chosen    []string
		quit      bool
		confirmed bool
	}{
		"space ticks":                         {[]string{"space", "down", "down", "space", "up", "up", "space"}, []string{"fruit 3", "paper"}, false, false},
		"all":                                 {[]string{"a"}, []string{"fruit 1", "fruit 2", "fruit 3", "paper"}, false, false},
		"none":                                {[]string{"a", "n"}, []string{"paper"}, false, false},
		"what is done cannot be ticked":       {[]string{"end", "space"}, []string{"paper"}, false, false},
		"one of them":                         {[]string{"enter", "down", "space", "space", "n", "a"}, []string{"linen"}, false, false},
		"a list that depends on another":      {[]string{"enter", "down", "space", "enter", "space", "enter", "y"}, []string{"linen", "a bow"}, true, true},
		"back keeps the choice":               {[]string{"space", "enter", "left", "down", "space"}, []string{"fruit 1", "fruit 2", "paper"}, false, false},
		"enter does not confirm":              {[]string{"space", "enter", "enter", "enter"}, []string{"fruit 1", "paper"}, false, false},
		"y does not confirm before the end":   {[]string{"space", "y", "enter", "y"}, []string{"fruit 1", "paper"}, false, false},
		"y confirms the summary":              {[]string{"space", "enter", "enter", "y"}, []string{"fruit 1", "paper"}, true, true},
		"enter ends a summary of nothing":     {[]string{"enter", "enter", "enter"}, []string{"paper"}, true, true},
		"esc leaves":                          {[]string{"a", "esc"}, []string{"fruit 1", "fruit 2", "fruit 3", "paper"}, true, false},
		"q leaves the summary":                {[]string{"a", "enter", "enter", "q"}, []string{"fruit 1", "fruit 2", "fruit 3", "paper"}, true, false},
		"ctrl+c leaves a text over the lists": {[]string{"d", "ctrl+c"}, []string{"paper"}, true, false},
		"esc in a text goes back to the list": {[]string{"d", "esc", "space"}, []string{"fruit 1", "paper"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(3)
			m := s.sized(80, 24)
			quit := types(m, c.keys...)
			require.Equal(t, c.chosen, s.chosen())
			require.Equal(t, c.quit, quit)
			require.Equal(t, c.confirmed, m.confirmed)
		})
	}
}

// At every size of the terminal, the screen fits and shows the item with the cursor, and each key that
// the screen lists has an effect.
func TestTheScreenOnEverySize(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {40, 24}, {24, 10}} {
		for _, there := range [][]string{nil, {"d"}, {"enter"}, {"enter", "down", "space", "enter"}, {"a", "enter", "enter"}, {"enter", "enter"}, {"enter", "?"}} {
			t.Run(fmt.Sprint(size, there), func(t *testing.T) {
				m := newShop(30).sized(size[0], size[1])
				types(m, there...)
				for n := range 40 {
					rows := strings.Split(m.draw(), "\n")
					require.LessOrEqual(t, len(rows), size[1], m.draw())
					for _, row := range rows {
						require.LessOrEqual(t, ansi.StringWidth(row), size[0], row)
						require.NotContains(t, row, "\x1b[31m", "a text of another program is not drawn as it is")
					}
					if m.reading == nil && len(m.page.items) > 0 {
						require.Contains(t, ansi.Strip(m.draw()), "▸", n)
					}
					types(m, "down")
				}
				for _, k := range m.keys() {
					for _, name := range strings.Fields(strings.NewReplacer("↑↓", "up", "←", "left").Replace(k.name)) {
						m := newShop(30).sized(size[0], size[1])
						types(m, append(there, "down", "down")...)
						if name == "n" {
							types(m, "a")
						}
						before := m.draw()
						require.True(t, types(m, name) || m.draw() != before, "the key %s is dead on %v", name, there)
					}
				}
			})
		}
	}
}

// The screen replies even to a key without an effect.
func TestAnUnknownKeyIsAnswered(t *testing.T) {
	for _, there := range [][]string{nil, {"d"}, {"enter"}, {"enter", "enter"}} {
		m := newShop(1).sized(80, 24)
		types(m, append(there, "x")...)
		require.Contains(t, m.draw(), "x does nothing here; ? lists the keys.")
	}
}

// The summary can be confirmed only after the whole summary was on the screen.
func TestALongSummaryIsReadBeforeItIsConfirmed(t *testing.T) {
	m := newShop(60).sized(80, 24)
	require.False(t, types(m, "a", "enter", "enter", "y"))
	require.Contains(t, m.draw(), "A part of the summary was not on the screen yet")
	require.False(t, types(m, "end", "y"), "end jumps over a part")
	require.True(t, types(m, "home", "pgdown", "pgdown", "pgdown", "pgdown", "y"))
	require.True(t, m.confirmed)
}

func TestAScreenThatIsTooSmallSaysSo(t *testing.T) {
	m := newShop(1).sized(20, 5)
	require.Equal(t, "This needs 24 column", m.draw())
	require.True(t, types(m, "esc"))
}

// Ask shows the lists and reads the choices line by line.
func TestAskLineByLine(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		err    error
		chosen []string
		says   []string
	}{
		"numbers":         {[]string{"3, 1", "", "y"}, nil, []string{"fruit 1", "fruit 3", "paper"}, []string{"  ✓  sold out", "  1  paper (chosen)", "in full: fruit 3"}},
		"all":             {[]string{"all", "", "yes"}, nil, []string{"fruit 1", "fruit 2", "fruit 3", "paper"}, nil},
		"nothing":         {[]string{"", ""}, nil, []string{"paper"}, nil},
		"not confirmed":   {[]string{"1", "", ""}, ErrLeft, []string{"fruit 1", "paper"}, nil},
		"wrong numbers":   {[]string{"4", "one", "0", "", "1 2", "all", "2", "1", "y"}, nil, []string{"linen", "a bow"}, []string{"4 is none of the numbers 1 to 3", "only one of them can be chosen", "all is none of the numbers 1 to 2"}},
		"a text in full":  {[]string{"d 1", "d 9", "d", "2", "", "y"}, nil, []string{"fruit 2", "paper"}, []string{"a line\na line\n", "9 is none of the numbers", "d is none of the numbers"}},
		"an end of input": {nil, errors.New("no more lines"), []string{"paper"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(3)
			var out bytes.Buffer
			err := s.Ask(&out, func(question string) (string, error) {
				fmt.Fprint(&out, question)
				if len(c.lines) == 0 {
					return "", errors.New("no more lines")
				}
				line := c.lines[0]
				c.lines = c.lines[1:]
				return line, nil
			})
			require.Equal(t, c.err, err, out.String())
			require.Equal(t, c.chosen, s.chosen())
			for _, text := range c.says {
				require.Contains(t, out.String(), text)
			}
			require.NotContains(t, out.String(), "\x1b")
			require.Empty(t, c.lines)
		})
	}
}
