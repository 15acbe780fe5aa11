package checklist

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Ask prints the lists to the writer out and reads the choices. The function read prints a question and
// returns a line; an error of read ends Ask.
func (l *Lists) Ask(out io.Writer, read func(question string) (string, error)) error {
	for i, p := l.next(0, 1); i < len(l.Pages); i, p = l.next(i+1, 1) {
		if err := p.ask(out, read); err != nil {
			return err
		}
	}
	s := l.Summarize()
	fmt.Fprintf(out, "\nSummary\n")
	printItems(out, page{&Page{}, s.Items}, true)
	if !s.Changes {
		return nil
	}
	word, err := read("\nWrite these changes? [y/N] ")
	if word = strings.ToLower(word); err == nil && word != "y" && word != "yes" {
		return ErrLeft
	}
	return err
}

// ask prints a page and reads the numbers of the items to choose.
func (p page) ask(out io.Writer, read func(string) (string, error)) error {
	fmt.Fprintf(out, "\n%s\n", p.Title)
	if p.Intro != "" {
		fmt.Fprintln(out, p.Intro)
	}
	printItems(out, p, false)
	question := "Which of them (numbers such as 1 3, all, none, or Enter to leave it so; d 1 shows 1 in full)? "
	if p.One {
		question = "Which one (a number, or Enter to leave it so; d 1 shows 1 in full)? "
	}
	for {
		line, err := read(question)
		if err != nil {
			return err
		}
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
		if len(words) == 2 && words[0] == "d" {
			err = p.printDetail(out, words[1])
		} else if err = p.take(words); err == nil {
			return nil
		}
		if err != nil {
			fmt.Fprintln(out, err)
		}
	}
}

func (p page) printDetail(out io.Writer, number string) error {
	items, err := p.numbered([]string{number})
	if err != nil {
		return err
	}
	for _, line := range safeLines(items[0].detail()) {
		fmt.Fprintln(out, line)
	}
	return nil
}

// take chooses items by the words that the person typed: numbers, all, or none. Without words the choice
// stays the same.
func (p page) take(words []string) error {
	switch {
	case len(words) == 0:
		return nil
	case len(words) == 1 && strings.EqualFold(words[0], "all") && !p.One:
		p.choose(p.choices()...)
		return nil
	case len(words) == 1 && strings.EqualFold(words[0], "none") && !p.One:
		p.choose()
		return nil
	}
	chosen, err := p.numbered(words)
	switch {
	case err != nil:
		return err
	case p.One && len(chosen) > 1:
		return errors.New("only one of them can be chosen")
	}
	p.choose(chosen...)
	return nil
}

func (p page) numbered(words []string) (chosen []*Item, err error) {
	open := p.choices()
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(open) {
			return nil, fmt.Errorf("%s is none of the numbers 1 to %d", safe(word), len(open))
		}
		if !slices.Contains(chosen, open[n-1]) {
			chosen = append(chosen, open[n-1])
		}
	}
	return chosen, nil
}

// printItems prints items with the numbers by which they are chosen. If the parameter details is true, it
// also prints each item's change in full.
func printItems(out io.Writer, p page, details bool) {
	group, n := "", 0
	for _, i := range p.items {
		if i.Group != group {
			group = i.Group
			fmt.Fprintf(out, "%s\n", safe(group))
		}
		number := i.Mark
		if i.open() {
			n++
			number = strconv.Itoa(n)
		}
		now := ""
		if i.On {
			now = " (chosen)"
		}
		fmt.Fprintf(out, "%3s  %s%s\n", number, safe(i.Text), now)
		for _, note := range i.Notes {
			fmt.Fprintf(out, "     %s\n", safe(note))
		}
		if details && i.Detail != "" {
			fmt.Fprintln(out)
			for _, line := range safeLines(i.Detail) {
				fmt.Fprintf(out, "%s\n", line)
			}
			fmt.Fprintln(out)
		}
	}
}

// detail returns what an item changes, in full.
func (i *Item) detail() string {
	if i.Detail != "" {
		return i.Detail
	}
	return strings.Join(append([]string{i.Text}, i.Notes...), "\n")
}
