package payload

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// Op says what an edit does to a line.
type Op byte

// The operations of an edit on a line: keep it, remove it, or add it.
const (
	Keep   Op = ' '
	Remove Op = '-'
	Add    Op = '+'
)

// Line is one line of a diff. Text includes the line break, unless the line is the last one and has none.
// If the edit replaces a line by another line, Words marks the words in which the two lines differ.
type Line struct {
	Op    Op
	Text  string
	Words []Span
}

// Diff compares two texts line by line. The kept and the removed lines together are the old text, and the
// kept and the added lines together are the new text.
func Diff(before, after string) (lines []Line) {
	at := 0
	for _, e := range udiff.Lines(before, after) {
		lines = append(lines, Kept(before[at:e.Start])...)
		lines = append(lines, Replace(before[e.Start:e.End], e.New)...)
		at = e.End
	}
	return append(lines, Kept(before[at:])...)
}

// Kept returns the lines of a diff in which the whole text stays unchanged.
func Kept(text string) []Line { return appendLines(nil, Keep, text) }

// Replace returns the lines of a diff that removes the text in removed and adds the text in added.
func Replace(removed, added string) []Line {
	lines := appendLines(nil, Remove, removed)
	middle := len(lines)
	lines = appendLines(lines, Add, added)
	for i := range min(middle, len(lines)-middle) {
		compareWords(&lines[i], &lines[middle+i])
	}
	return lines
}

func appendLines(lines []Line, op Op, text string) []Line {
	for line := range strings.Lines(text) {
		lines = append(lines, Line{Op: op, Text: line})
	}
	return lines
}

// maxWords is the largest length in bytes of a line in which Diff marks words.
const maxWords = 2000

// compareWords marks the words that differ between a removed line and the added line that replaces it. If
// more than half of either line differs, it marks nothing, because so many marks would distract.
func compareWords(old, new *Line) {
	if len(old.Text) > maxWords || len(new.Text) > maxWords || !utf8.ValidString(old.Text) || !utf8.ValidString(new.Text) {
		return
	}
	was, is := make([]Style, len(old.Text)), make([]Style, len(new.Text))
	shift := 0
	for _, e := range udiff.Strings(old.Text, new.Text) {
		from := e.Start + shift
		paintWords(was, old.Text, e.Start, e.End, RemovedWord)
		paintWords(is, new.Text, from, from+len(e.New), AddedWord)
		shift += len(e.New) - (e.End - e.Start)
	}
	if 2*painted(was) <= len(was) || 2*painted(is) <= len(is) {
		old.Words, new.Words = spans(was), spans(is)
	}
}

// paintWords gives a style to text[from:to], without the line break. If the range begins or ends inside a
// word, paintWords extends it to the whole word.
func paintWords(styles []Style, text string, from, to int, style Style) {
	inWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }
	if from < to {
		if first, _ := utf8.DecodeRuneInString(text[from:]); inWord(first) {
			from = len(strings.TrimRightFunc(text[:from], inWord))
		}
		if last, _ := utf8.DecodeLastRuneInString(text[:to]); inWord(last) {
			to = len(text) - len(strings.TrimLeftFunc(text[to:], inWord))
		}
	}
	paint(styles, from, min(to, len(strings.TrimSuffix(text, "\n"))), style)
}

func painted(styles []Style) (n int) {
	for _, s := range styles {
		if s != Plain {
			n++
		}
	}
	return n
}

// Patch returns the styles of a patch in the format of apply_patch, and the numbers of its added and
// removed lines.
func Patch(text string) (all []Span, added, removed int) {
	at := 0
	for line := range strings.Lines(text) {
		end := at + len(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "***"), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
			all = append(all, Span{at, end, Key})
		case strings.HasPrefix(line, "@@"):
			all = append(all, Span{at, end, Comment})
		case strings.HasPrefix(line, "+"):
			all = append(all, Span{at, end, Added})
			added++
		case strings.HasPrefix(line, "-"):
			all = append(all, Span{at, end, Removed})
			removed++
		}
		at += len(line)
	}
	return all, added, removed
}
