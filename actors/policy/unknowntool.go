package policy

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// The limits for the input of a tool that nod does not know: the number of texts and words, and the number of
// bytes. nod asks about an input with more, because checking takes about 0.3 µs per byte.
const (
	maxInputTexts = 2000
	maxInputBytes = 32 << 10
)

// namesOnlyProject reports whether the input of a tool that nod does not know names no secret, no protected
// file, no path outside the project, no address and no act. A text that only looks like such a name counts as
// such a name.
func (ev *evaluation) namesOnlyProject() bool {
	in := inputTexts{}
	return in.read(ev.call.Input) && !slices.ContainsFunc(in.whole, acts) && !slices.ContainsFunc(in.words, ev.namesOutside)
}

// namesNoSecret reports whether the input of a tool that nod does not know names no secret.
func (ev *evaluation) namesNoSecret() bool {
	in := inputTexts{}
	return in.read(ev.call.Input) && !slices.ContainsFunc(in.words, func(text string) bool {
		return slices.ContainsFunc(pieces(text), func(p string) bool { return ev.pol.shell.Secrets.MayBeListed(p, ev.location, true) })
	})
}

// inputTexts has the keys and the strings of an input at any depth, also those of JSON inside a string. If a
// text has URL encoding, inputTexts also has the decoded text.
type inputTexts struct {
	whole []string
	words []string // the texts, each followed by its words
	bytes int      // the total length of the texts
}

// read adds the texts of an input. It returns false if the input is not JSON, or is larger than the limits.
func (t *inputTexts) read(input []byte) bool {
	in := json.NewDecoder(bytes.NewReader(input))
	in.UseNumber()
	for {
		switch token, err := in.Token(); {
		case err == io.EOF:
			return true
		case err != nil:
			return false
		default:
			if text, isText := token.(string); isText && !t.add(text) {
				return false
			}
		}
	}
}

func (t *inputTexts) add(text string) bool {
	if t.bytes += len(text); t.bytes > maxInputBytes {
		return false
	}
	t.whole = append(t.whole, strings.TrimSpace(text))
	t.words = append(t.words, strings.TrimSpace(text))
	t.words = append(t.words, wordsIn(text)...)
	if len(t.words) > maxInputTexts {
		return false
	}
	if inner := []byte(text); json.Valid(inner) && !t.read(inner) {
		return false
	}
	plain := unescaped(text)
	return plain == text || t.add(plain)
}

// wordsIn splits a text into the words that may be names.
func wordsIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`<>()[]{},;|&=", r) })
}

// unescaped returns a text with its URL encoding decoded. Faulty codes stay as they are.
func unescaped(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if code, err := hex.DecodeString(rest[:min(2, len(rest))]); err == nil && len(code) == 1 {
			b.Write(code)
			rest = rest[2:]
		} else {
			b.WriteByte('%')
		}
		text = rest
	}
}

// namesOutside reports whether a word may name something to which an answer for the project does not apply.
func (ev *evaluation) namesOutside(text string) bool {
	if strings.Contains(text, "://") || address.MatchString(text) || innerHost(text) {
		return true
	}
	return slices.ContainsFunc(pieces(text), func(p string) bool {
		slashed := pathname.Slashes(p)
		leads := spelledAsOutside(p) || len(ev.location.Follow(p)) > 0
		return computed.MatchString(slashed) || ev.pol.shell.Secrets.MayBe(p, ev.location, true) || leads && !ev.location.InProject(p) ||
			slices.ContainsFunc(pathname.Split(nil, slashed), func(seg string) bool { return pathname.NeverRemembered.Has(seg, true) })
	})
}

// spelledAsOutside reports whether a path is absolute, begins with ~, or has a segment "..". Any other path
// leads out of the project only by a symbolic link.
func spelledAsOutside(p string) bool {
	slashed := pathname.Slashes(p)
	return pathname.IsAbs(slashed) || strings.HasPrefix(p, "~") || strings.Contains("/"+slashed+"/", "/../")
}

// computed matches a path that begins in another user's home directory, or that has a variable before a slash.
var computed = lazyregexp.New(`^~[^/]+|[$%].*/`)

// acts reports whether a text may tell a tool to do something. Such a text contains a database statement or a
// command in the shell's brackets, or is a single word for an act, as the name or the value of a field.
func acts(text string) bool {
	return actingText.MatchString(text) || len(text) < 40 && !strings.ContainsAny(text, " /.") && tools.Acts(text)
}

var actingText = lazyregexp.New(`(?is)\b(?:drop|truncate|alter|create|grant|revoke|attach|pragma|vacuum|call|exec(?:ute)?)\s+\w+|\b(?:delete|copy|load)\b.*\b(?:from|to|data)\b|\b(?:insert|replace|merge|into)\s+(?:into|outfile|dumpfile)\b|` +
	`\bupdate\b.*\bset\b|\b(?:pg_|lo_|xp_|sp_|dblink|load_file|load_extension|readfile|writefile)\w*\s*\(|\$\(|` + "`" + `|\brm\s+-`)

// address matches a text that is a host with a path, a mail address, or a URL of a scheme such as file. It
// does not match a file with a line number, such as a.go:12.
var address = lazyregexp.New(`(?i)^(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?[/?#]|^[\w.+-]+@[\w-]+(?:\.[\w-]+)+|^(?:file|data|javascript|mailto|view-source|jar|blob|about|chrome|vscode|ssh|tel|urn):`)

// innerHost reports whether a text without a scheme may be the address of a host that is not public.
func innerHost(text string) bool {
	host, _, _ := strings.Cut(text, "/") // a text with spaces is no host, but nod also checks each word of the text
	host = strings.TrimRight(host, ".:!?")
	return !strings.ContainsAny(host, " \t\r\n") && (strings.EqualFold(host, "localhost") || strings.Contains(host, ".") || port.MatchString(host)) && weburl.Private("http://"+host) != ""
}

var port = lazyregexp.New(`:\d+$`)
