package tools

import (
	"slices"
	"strings"
)

// Content is the kind of text that a field probably holds. The field is in the input of a tool that nod does
// not know.
type Content int

const (
	OtherContent Content = iota
	CommandContent
	CodeContent
	QueryContent
	PathContent
	PlanContent
)

// contents has the words in the names of fields, by the kind of text in the fields.
var contents = []struct {
	words   []string
	content Content
}{
	{strings.Fields("command commands cmd cmds shell bash script"), CommandContent},
	{strings.Fields("code function expression javascript js python py program snippet"), CodeContent},
	{strings.Fields("sql query queries statement statements"), QueryContent},
	{strings.Fields("plan"), PlanContent},
	{strings.Fields("path paths file files filename filenames filepath filepaths dir directory folder attachment attachments destination uri"), PathContent},
}

// ContentOf returns the kind of text that a field with this name probably holds.
func ContentOf(field string) Content {
	words := wordsOf(field)
	for _, c := range contents {
		if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(c.words, w) }) {
			return c.content
		}
	}
	return OtherContent
}
