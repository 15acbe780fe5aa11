package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/nodbus/nod/connectors/people"
)

// interactive reports whether standard input is a terminal, so that the command can ask a person.
func (e *env) interactive() bool {
	f, ok := e.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// agree asks a yes-or-no question at the terminal. An empty answer and a signal to stop both mean no.
func (e *env) agree(question string) bool {
	word := strings.ToLower(e.typed(question + " [y/N] "))
	return word == "y" || word == "yes"
}

// typed reads one word from the terminal. After a signal to stop it returns "".
func (e *env) typed(prompt string) string {
	return e.read(prompt, func() string {
		var word string
		_, _ = fmt.Fscanln(e.stdin, &word) // Fscanln returns an error for an empty line, and leaves the word empty
		return word
	})
}

// typedLine reads one line from the terminal, without blanks at its ends. After a signal to stop it
// returns "".
func (e *env) typedLine(prompt string) string {
	return e.read(prompt, func() string {
		line, _ := bufio.NewReader(e.stdin).ReadString('\n') // at the end of the input, the line lacks only its line break
		return strings.TrimSpace(line)
	})
}

// printWrapped prints a text, with line breaks between words; see textWidth.
func (e *env) printWrapped(text string) {
	for _, row := range people.Wrap(text, e.textWidth()) {
		fmt.Fprintln(e.stdout, strings.TrimPrefix(row, " "))
	}
}

func (e *env) read(prompt string, one func() string) string {
	fmt.Fprint(e.stderr, prompt)
	typed := make(chan string, 1)
	go func() { typed <- one() }()
	select {
	case text := <-typed:
		return text
	case <-e.ctx.Done():
		return ""
	}
}
