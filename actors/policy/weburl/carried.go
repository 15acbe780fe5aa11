package weburl

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/schemas/redact"
)

// carried returns the faults of a URL that carries a secret. If the argument partial is true, a parameter
// without a value counts too, because only the shell knows its value.
func carried(u *url.URL, partial bool) (all []Fault) {
	add := func(what string) {
		f := secretFault(u, what)
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	if _, withPassword := u.User.Password(); u.User != nil {
		switch {
		case !isWeb(u): // such as the user of SSH, or the login of a database
		case withPassword:
			add("a password")
		default:
			add("a login")
		}
	}
	if n := len(u.RawQuery) + len(u.EscapedFragment()) + len(u.EscapedPath()) + len(u.Host); n > MaxSearched {
		return append(all, secretFault(u, strconv.Itoa(n)+" characters, too many to search for secrets,"))
	}
	for _, text := range []string{u.RawQuery, u.EscapedFragment()} {
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '&' || r == ';' }) {
			name, value, with := strings.Cut(part, "=")
			name, value = decoded(name), decoded(value)
			switch secretName := with && (value != "" || partial) && secretParameter(name); {
			case secretName && strings.Contains(strings.ToLower(name), "pass"):
				add("a password")
			case secretName && plainParameter.MatchString(name):
				add("a secret (" + name + ")")
			case secretName:
				add("a secret")
			case holdsPassword(value):
				add("a password")
			case IsSecret(value), IsSecret(name):
				add("a secret")
			}
		}
	}
	for seg := range strings.SplitSeq(u.EscapedPath(), "/") {
		if IsSecret(decoded(seg)) {
			add("a secret")
		}
	}
	if IsSecret(u.Hostname()) {
		add("a secret")
	}
	return all
}

func secretFault(u *url.URL, what string) Fault {
	return Fault{"sends " + what + " in the URL to " + hostOf(u), schemas.RiskHigh, WholeCall}
}

func decoded(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// IsSecret reports whether a text has a secret that the log would not store, such as a token or an address
// with a password. IsSecret also searches the texts that this text may encode.
func IsSecret(text string) bool {
	for _, t := range spellings(text) {
		if _, n := (redact.Redactor{}).Text(t); n > 0 {
			return true
		}
	}
	return false
}

// spellings returns a text, and the texts that it may encode.
func spellings(text string) []string {
	return slices.Compact([]string{text, decoded(text), fromBase64(text)})
}

// holdsPassword reports whether a text has an address with a password, such as that of a database.
func holdsPassword(text string) bool {
	for _, t := range spellings(text) {
		if addressWithPassword.MatchString(t) && IsSecret(t) {
			return true
		}
	}
	return false
}

var addressWithPassword = lazyregexp.New(`(?i)[a-z][a-z0-9+.-]*://[^\s/@:]*:[^\s@]+@`)

// fromBase64 returns the text in a base64 word, or "" for any other word. Short words do not count, because
// many ordinary words are base64 too.
func fromBase64(word string) string {
	word = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", " ", "+").Replace(word), "=")
	if len(word) < 16 {
		return ""
	}
	text, err := base64.RawStdEncoding.DecodeString(word)
	if err != nil || !utf8.Valid(text) {
		return ""
	}
	return string(text)
}

// secretParameter reports whether a parameter of this name grants access. A token for a page of results does
// not.
func secretParameter(name string) bool {
	name = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return -1
		}
		return r
	}, strings.ToLower(name))
	return secretParameters.MatchString(name) && !pageTokens.MatchString(name)
}

// plainParameter matches a name that people cannot mistake for a text of nod.
var plainParameter = lazyregexp.New(`^[A-Za-z0-9._\[\]-]{1,40}$`)

var (
	secretParameters = lazyregexp.New(`^(?:key|auth|authorization|authkey|sig|signature|pass|pwd|otp|jwt|bearer|session|sessionid|sas|xamzsecuritytoken)$|` +
		`(?:token|secret|passwo?r?d|passphrase|apikey|appkey|accesskey|secretkey|privatekey|accountkey|signature|credentials?)$`)
	pageTokens = lazyregexp.New(`^(?:page|nextpage|prevpage|next|prev|previous|cursor|continuation|sync|resume|start|csrf)token$`)
)

// MaxSearched is the length, in bytes, up to which nod searches a URL for secrets, because the search is slow. A
// longer URL counts as one that sends a secret.
const MaxSearched = 1 << 10

// The lengths up to which a URL counts as a plain address.
const (
	maxQuery   = 256
	maxSegment = 200
	maxPath    = 600
	maxHost    = 100
)

// size returns a fault if a URL is so long that it may carry data out.
func size(u *url.URL) []Fault {
	path, longest := u.EscapedPath(), 0
	for seg := range strings.SplitSeq(path, "/") {
		longest = max(longest, len(seg))
	}
	if n := len(u.RawQuery) + len(u.EscapedFragment()); n > maxQuery || longest > maxSegment || len(path) > maxPath || len(u.Hostname()) > maxHost {
		return []Fault{{"sends " + strconv.Itoa(len(u.String())) + " characters in the URL to " + hostOf(u), schemas.RiskMedium, DomainOf}}
	}
	return nil
}
