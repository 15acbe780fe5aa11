// Package checklist lets a person at a terminal choose from lists and confirm the summary of the
// choice. Show draws the lists on a full screen; Ask prints them and reads lines, for terminals that
// cannot draw and for screen readers.
package checklist

import (
	"errors"
	"strings"

	"github.com/nodbus/nod/connectors/people"
)

// ErrLeft is the error of a person who left the lists, or did not confirm the summary.
var ErrLeft = errors.New("nothing was changed")

// An Item is one line that a person may choose. Its texts may quote other programs: the package makes
// them safe to show.
type Item struct {
	Group  string   // the heading above the first of the items with this group; may be empty
	Text   string   // one line
	Notes  []string // the lines below it
	Detail string   // the change or the rule in full, shown on demand
	Mark   string   // of an item that cannot be chosen: the sign in place of its box
	On     bool     // the item is chosen
}

func (i *Item) open() bool { return i.Mark == "" }

// A Page is one list of items about one matter.
type Page struct {
	Title, Intro string
	One          bool // exactly one item is on, from the start
	// Items returns the items. It is called each time a person comes to the page, and returns the same
	// items unless an earlier page's choice changed them.
	Items func() []*Item
}

// A Summary is what the choice would change. Its items cannot be chosen.
type Summary struct {
	Items   []*Item
	Changes bool // there is something to confirm
}

// Lists are pages and the summary that follows them. Pages without an item to choose are left out.
type Lists struct {
	Title     string
	Pages     []Page
	Summarize func() Summary
}

// page is a Page with its present items.
type page struct {
	*Page
	items []*Item
}

// next returns the first page from index i on, in steps of by, that has an item to choose. Its index is
// len(l.Pages) after the last page, and -1 before the first one.
func (l *Lists) next(i, by int) (int, page) {
	for ; i >= 0 && i < len(l.Pages); i += by {
		p := page{&l.Pages[i], l.Pages[i].Items()}
		if len(p.choices()) > 0 {
			return i, p
		}
	}
	return i, page{}
}

// choices returns the items that can be chosen.
func (p page) choices() (open []*Item) {
	for _, i := range p.items {
		if i.open() {
			open = append(open, i)
		}
	}
	return open
}

// choose sets the items to choose to exactly these. A page with One ignores an empty list.
func (p page) choose(chosen ...*Item) {
	if p.One && len(chosen) == 0 {
		return
	}
	for _, i := range p.items {
		i.On = false
	}
	for _, i := range chosen {
		i.On = true
	}
}

// toggle changes one item. On a page with One it chooses the item.
func (p page) toggle(i *Item) {
	if p.One {
		p.choose(i)
		return
	}
	i.On = !i.On
}

// box returns the sign before an item.
func (p page) box(i *Item) string {
	switch {
	case !i.open():
		return " " + i.Mark + " "
	case p.One && i.On:
		return "(•)"
	case p.One:
		return "( )"
	case i.On:
		return "[x]"
	}
	return "[ ]"
}

// safe returns a text as one line that is safe to show.
func safe(text string) string { return people.FixedWidth(people.Line(text)) }

// safeLines returns the lines of a text, each safe to show.
func safeLines(text string) (all []string) {
	for line := range strings.Lines(text) {
		all = append(all, safe(strings.ReplaceAll(strings.TrimRight(line, " \r\n"), "\t", "    ")))
	}
	return all
}
