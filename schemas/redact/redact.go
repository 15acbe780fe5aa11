// Package redact finds secrets in texts and in JSON, and replaces them by a mark. It finds a secret
// by its shape (tokens of well-known services, private keys, users in addresses), by the name before
// it (a variable, a flag, a header, a JSON field), or by the file to which it is written. In doubt it
// replaces a text. It cannot find a secret that does not look like one, such as a password in a
// sentence.
package redact

import (
	"strings"
)

// Mark stands in the place of each secret.
const Mark = "[redacted]"

// Redactor replaces secrets. The zero Redactor knows no secret files. A Redactor is safe for concurrent
// use if its SecretFile is.
type Redactor struct {
	// SecretFile reports whether the content of the file with this path is secret. The path has the form
	// that an agent wrote, relative or absolute. If SecretFile is nil, no file is secret.
	SecretFile func(path string) bool
}

// Text returns s with a Mark for each secret, and the number of these marks. A whole shell line or patch
// that writes to a secret file becomes one Mark with the name of the file.
func (r Redactor) Text(s string) (string, int) {
	if len(s) < shortest {
		return s, 0
	}
	if file := r.writtenSecret(s); file != "" {
		return Mark + " (it writes " + file + ")", 1
	}
	n := 0
	s = privateKeys.replace(s, &n)
	s = replaceUsers(s, &n)
	for i := range finders {
		s = finders[i].replace(s, &n)
	}
	return s, n
}

// shortest is the length of the shortest text that may contain a secret, such as "otp=x".
const shortest = 5

// writtenSecret returns the secret file to which a shell line or a patch writes, or "" if it writes
// to no secret file.
func (r Redactor) writtenSecret(s string) string {
	if r.SecretFile == nil || !strings.Contains(s, ">") && !strings.Contains(s, "tee ") && !strings.Contains(s, "*** ") && !strings.Contains(s, "+++ ") {
		return ""
	}
	for _, m := range writes().FindAllStringSubmatch(s, -1) {
		file := strings.Trim(m[1], `"'`)
		if file != "" && !strings.HasPrefix(file, "/dev/") && !strings.HasPrefix(file, "/proc/") && r.SecretFile(file) {
			return file
		}
	}
	return ""
}
