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

// isKnown reports whether a value is no secret even though the name before it stands for a secret.
// Such a value is a variable that the shell or a program replaces, a word of a programming language,
// or a Mark.
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

// isKnownArgument does the work of isKnown for the word that follows a flag. Another flag in this
// place is no secret either.
func isKnownArgument(v string, literal bool) bool {
	return strings.HasPrefix(v, "-") || isKnown(v, literal)
}

// isUserIDs does the work of isKnown for a value that may also consist of a user's and a group's
// numbers.
func isUserIDs(v string, literal bool) bool { return userIDs.MatchString(v) || isKnown(v, literal) }

// isNotOpaque reports whether the value of an environment variable is no secret, whatever the
// variable's name is. A value with a long run of letters and digits counts as a secret.
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
