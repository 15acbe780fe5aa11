package policy

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// maxInputTexts is the number of words in the input of an unknown tool that nod checks. An input with
// more words asks.
const maxInputTexts = 2000

// namesOnlyProject reports whether the input of a tool that nod does not know names no secret, no
// protected file, no path outside the project and no address that is not public. Any text in the input
// may be a path, so text that only looks like such a name counts too.
func (ev *evaluation) namesOnlyProject() bool {
	texts, ok := inputTexts(ev.call.Input)
	return ok && !slices.ContainsFunc(texts, ev.namesOutside)
}

// inputTexts returns all words in the keys and the strings of an input, at any depth. ok is false if the
// input is not JSON, or has too many words.
func inputTexts(input json.RawMessage) (texts []string, ok bool) {
	in := json.NewDecoder(bytes.NewReader(input))
	in.UseNumber()
	for {
		switch token, err := in.Token(); {
		case err == io.EOF:
			return texts, true
		case err != nil, len(texts) > maxInputTexts:
			return nil, false
		default:
			if text, isText := token.(string); isText {
				texts = append(texts, strings.TrimSpace(text))
				texts = append(texts, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`<>()[]{},;|&=", r) })...)
			}
		}
	}
}

// namesOutside reports whether a word may name something that an answer for the project does not cover.
func (ev *evaluation) namesOutside(text string) bool {
	names := ev.pol.shell.Secrets
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		return scheme != "http" && scheme != "https" || tools.PrivateURL(text) != "" || names.MayBeListed(rest, ev.location, false)
	}
	if innerHost(text) {
		return true
	}
	return slices.ContainsFunc(pieces(text), func(p string) bool {
		slashed := pathname.Slashes(p)
		leads := pathname.IsAbs(slashed) || strings.HasPrefix(p, "~") || strings.Contains("/"+slashed+"/", "/../")
		return names.MayBe(p, ev.location, false) || leads && !ev.location.InProject(p) ||
			slices.ContainsFunc(pathname.Split(nil, slashed), func(seg string) bool { return pathname.NeverRemembered.Has(seg, true) })
	})
}

// innerHost reports whether a text without a scheme may be the address of a host that is not public.
func innerHost(text string) bool {
	host, _, _ := strings.Cut(text, "/") // the words of a text with spaces are checked one by one
	host = strings.TrimRight(host, ".:!?")
	return !strings.ContainsAny(host, " \t\r\n") && (strings.EqualFold(host, "localhost") || strings.Contains(host, ".") || port.MatchString(host)) && tools.PrivateURL("http://"+host) != ""
}

var port = lazyregexp.New(`:\d+$`)
