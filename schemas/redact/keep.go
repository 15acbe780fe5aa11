package redact

import (
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

var (
	variable = lazyregexp.New(`^(?i:(?:bearer|basic|token|digest)\s+)?(?:\$\w+|\$\{\w+\}|\$\([^)]*\)?|%\w+%|\$?\{\{.*\}\}|process\.env\.\w+|os\.environ.*)$`)
	opaque   = lazyregexp.New(`[A-Za-z0-9]{16,}`)
	userIDs  = lazyregexp.New(`^\d+:\d+$`)
)

// isKnown reports whether a value is no secret, although its name stands for one: it is a variable that
// the shell or a program replaces, a word of a programming language, or a Mark.
func isKnown(v string, literal bool) bool {
	v = strings.TrimSpace(v)
	switch strings.ToLower(v) {
	case "", "true", "false", "null", "nil", "none", "undefined", "bearer", "basic", "string", "str":
		return true
	}
	if strings.HasPrefix(v, Mark) || strings.HasSuffix(v, Mark) {
		return true
	}
	return !literal && variable.MatchString(v)
}

// isKnownArgument is isKnown for the word that follows a flag. This word is no secret if it is another
// flag.
func isKnownArgument(v string, literal bool) bool {
	return strings.HasPrefix(v, "-") || isKnown(v, literal)
}

// isUserIDs is isKnown for a value that may also be the numbers of a user and a group.
func isUserIDs(v string, literal bool) bool { return userIDs.MatchString(v) || isKnown(v, literal) }

// isNotOpaque reports whether the value of an environment variable with any name is no secret. A value is
// taken for a secret if it has a long run of letters and digits.
func isNotOpaque(v string, literal bool) bool {
	if isKnown(v, literal) {
		return true
	}
	run := opaque.FindString(v)
	return !strings.ContainsAny(run, "0123456789") || strings.Trim(run, "0123456789") == "" || strings.Contains(v, "://") || strings.Contains(v, "/")
}

var (
	address  = lazyregexp.New(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)
	hostPort = lazyregexp.New(`^[\w.-]*(?::\d*)?$`)
)

// replaceUsers replaces the user and the password in each address, such as postgres://ann:secret@db. It
// keeps the user of an SSH address that has no password.
func replaceUsers(s string, n *int) string {
	if !strings.Contains(s, "://") || !strings.Contains(s, "@") {
		return s
	}
	return address().ReplaceAllStringFunc(s, func(a string) string {
		scheme, rest, _ := strings.Cut(a, "://")
		authority, _, _ := strings.Cut(rest, "/")
		end := strings.LastIndexByte(authority, '@')
		if !hostPort.MatchString(authority) && strings.Contains(authority, ":") { // a password may contain a slash, so the @ may follow the first slash
			beforeQuery, _, _ := strings.Cut(rest, "?")
			end = strings.LastIndexByte(beforeQuery, '@')
		}
		if end <= 0 {
			return a
		}
		user := rest[:end]
		if user == Mark || strings.HasSuffix(strings.ToLower(scheme), "ssh") && !strings.Contains(user, ":") || isKnown(user, false) {
			return a
		}
		*n++
		return scheme + "://" + Mark + rest[end:]
	})
}
