// Package checklist lets a person at a terminal choose from lists and confirm the summary of the
// choice. Show draws the lists on a full screen; Ask prints them and reads lines, for terminals that
// cannot draw and for screen readers.
package checklist

import (
	"errors"
	"strings"

	"github.com/nodbus/nod/connectors/people"
)

// ErrLeft is the error if a person leaves the lists, or does not confirm the summary.
var ErrLeft = errors.New("nothing was changed")

// An Item is an entry of a list that a person may choose. Its texts may quote other programs, so the
// package makes them safe to show.
type Item struct {
	Group  string   // the heading above all items of this group; may be empty
	Text   string   // the item's own text, on one line
	Notes  []string // further lines below the item's text
	Detail string   // the item's change or rule in full, shown on demand
	Mark   string   // the sign in place of the box, for an item that cannot be chosen
	On     bool     // true if the item is chosen
}

func (i *Item) open() bool { return i.Mark == "" }

// A Page is one list of related items.
type Page struct {
	Title, Intro string
	One          bool // if true, exactly one item is chosen at any time
	// Items returns the items of the page. It is called each time a person comes to the page, and the items
	// differ only if the person has changed a choice on an earlier page.
	Items func() []*Item
}

// A Summary lists the changes that follow from the chosen items. Its own items cannot be chosen.
type Summary struct {
	Items   []*Item
	Changes bool // true if there are changes to confirm
}

// Lists are pages and the summary that follows them. Pages without an item that can be chosen are left
// out.
type Lists struct {
	Title     string
	Pages     []Page
	Summarize func() Summary
}

// page is a Page with its current items.
type page struct {
	*Page
	items []*Item
}

// next searches the pages from index i, in steps of the parameter by. It returns the first page with an item
// that can be chosen, and the index of that page. If there is none, the index is len(l.Pages), or -1 for a
// search backwards.
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

// choose chooses exactly the given items. On a page that must have one chosen item, it ignores an empty list.
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

// toggle chooses an item, or drops it if it is chosen. On a page that must have one chosen item, it never
// drops the item.
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
