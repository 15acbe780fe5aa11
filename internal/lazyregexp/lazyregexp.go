// Package lazyregexp compiles regular expressions at their first use. A hook uses only few of nod's
// expressions, and compiling all of them at its start would take a millisecond.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled when a method is first called. The methods
// are those of regexp.Regexp, and are safe for concurrent use.
type Regexp func() *regexp.Regexp

// New returns the regular expression with the given text. If the text is invalid, the first use of
// the expression panics.
func New(expr string) Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// MatchString reports whether the expression matches a part of s.
func (r Regexp) MatchString(s string) bool { return r().MatchString(s) }

// FindString returns the leftmost match in s.
func (r Regexp) FindString(s string) string { return r().FindString(s) }

// FindStringSubmatch returns the leftmost match in s, and its groups.
func (r Regexp) FindStringSubmatch(s string) []string { return r().FindStringSubmatch(s) }

// FindAllString returns the matches in s, at most n of them. If n is negative, it returns all.
func (r Regexp) FindAllString(s string, n int) []string { return r().FindAllString(s, n) }

// FindAllStringSubmatch returns the matches in s with their groups, at most n of them. If n is
// negative, it returns all.
func (r Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r().FindAllStringSubmatch(s, n)
}

// ReplaceAllString returns s with each match replaced by the template to.
func (r Regexp) ReplaceAllString(s, to string) string { return r().ReplaceAllString(s, to) }

// Match reports whether the expression matches a part of b.
func (r Regexp) Match(b []byte) bool { return r().Match(b) }

// ReplaceAllLiteralString returns s with each match replaced by the text in the parameter to. It does
// not expand $ in this text.
func (r Regexp) ReplaceAllLiteralString(s, to string) string {
	return r().ReplaceAllLiteralString(s, to)
}
