package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// urlIn matches a URL in a word, also in a flag or in code.
var urlIn = lazyregexp.New("(?i)[a-z][a-z0-9+.-]*://[^\\s\"'`<>|]+")

// URLFaults returns the faults of the URLs that a command may connect to, without duplicates. A command that
// only prints or searches text has none. The function partial reports whether only the shell knows a part of a
// word.
func URLFaults(argv []string, partial func(w string) bool) (all []weburl.Fault) {
	name := ProgramName(argv[0])
	client := name == "curl" || name == "wget"
	if !client && !slices.ContainsFunc(argv[1:], hasScheme) || Reader(name) != nil || name == "git" && !gitConnects(argv) {
		return nil
	}
	left := maxURLBytes
	for i, spelled := range argv[1:] {
		w := spelled
		var urls []string
		if client {
			w = fewSlashes.ReplaceAllString(w, "$1://")
		}
		switch {
		case hasScheme(w):
			urls = urlIn.FindAllString(w, maxURLs)
		case client && bareURL.MatchString(w) && !(name == "curl" && isData(argv, i+1)):
			urls = []string{"http://" + w}
		}
		for _, u := range urls {
			if left -= min(len(u), weburl.MaxSearched); left < 0 {
				return append(all, weburl.TooMany)
			}
			for _, f := range weburl.OfWord(u, partial(spelled)) {
				if !slices.Contains(all, f) {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// fewSlashes matches the beginning of an address that curl takes with one to three slashes, or without any.
var fewSlashes = lazyregexp.New(`(?i)^(https?|ftps?):/{0,3}`)

// isData reports whether curl certainly sends the word at index i as data or as a header: the word follows such a
// flag, and the word before this flag takes no value, so that the flag itself is no value.
func isData(argv []string, i int) bool {
	return i > 1 && slices.Contains(dataFlags, argv[i-1]) && (i == 2 || takesNoValue.MatchString(argv[i-2])) && !slices.Contains(argv[:i], "--")
}

var (
	dataFlags    = strings.Fields("-d --data --data-ascii --data-binary --data-raw --data-urlencode --json -F --form --form-string -H --header")
	takesNoValue = lazyregexp.New(`(?s)^(?:[^-].*|-[fgIiLkSsv]+|--(?:compressed|fail|head|include|insecure|location|show-error|silent|verbose))?$`)
)

func hasScheme(w string) bool { return strings.Contains(w, "://") }

// nod checks at most maxURLs URLs in one word, and maxURLBytes bytes of URLs in one command.
const (
	maxURLs     = 20
	maxURLBytes = 8 << 10
)

// bareURL matches the address of a web server without its scheme. The name of a host alone does not match.
var bareURL = lazyregexp.New(`^(?:[^-\s/@{}"'=][^\s/@{}"']*@[\w.-]+|[\w-]+(?:\.[\w-]+)+(?::\d+)?[/?])`)

// gitConnects reports whether a git command connects to another repository or stores the address of one.
func gitConnects(argv []string) bool {
	plain := withoutGlobals(argv)
	return Reaches(Harms(argv)) || len(plain) > 1 && slices.Contains([]string{"clone", "remote", "submodule", "fetch", "archive", "config"}, plain[1])
}

// SendsSecretURL returns the reason if a command sends a secret in a URL, or "".
func SendsSecretURL(argv []string) string {
	for _, f := range URLFaults(argv, func(string) bool { return false }) {
		if f.Needs == weburl.WholeCall {
			return f.Why
		}
	}
	return ""
}
