// Package weburl finds the faults of a URL in a call: the URL carries a secret or much data to another
// machine, or leads to a place that is not on the public web.
package weburl

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Naming is how exactly a rule names a URL. A greater Naming is more exact.
type Naming int

const (
	AnyURL    Naming = iota // the rule covers every URL of its tool
	DomainOf                // the rule names a domain with all its hosts
	HostOf                  // the rule names the URL's host
	WholeCall               // the rule names the whole URL, or this one tool without a pattern
)

// Fault is a reason to ask about a URL. An allow rule covers the URL only if it names the URL at least as
// exactly as Needs.
type Fault struct {
	Why   string
	Risk  schemas.Risk
	Needs Naming
}

// TooMany is the fault of a call with more URLs than nod searches.
var TooMany = Fault{"sends more in URLs than nod can search for secrets", schemas.RiskHigh, WholeCall}

// OfFetch returns the faults of a URL that a tool fetches from the public web. The secrets come first.
func OfFetch(raw string) []Fault {
	u, err := url.Parse(raw)
	if err != nil {
		return append(unreadable(raw), Fault{"is not a web address", schemas.RiskHigh, HostOf})
	}
	all := carried(u, false)
	switch why := private(u); {
	case isMetadata(u):
		all = append(all, metadataFault)
	case why != "":
		all = append(all, Fault{why, schemas.RiskHigh, DomainOf})
	case isAddress(u):
		all = append(all, Fault{bareAddress(u), schemas.RiskHigh, HostOf})
	}
	return append(all, size(u)...)
}

// OfSearch returns the faults of a text that a tool sends to a search engine.
func OfSearch(query string) []Fault {
	switch {
	case len(query) > MaxSearched:
		return []Fault{{"sends " + strconv.Itoa(len(query)) + " characters, too many to search for secrets, to a search engine", schemas.RiskHigh, WholeCall}}
	case IsSecret(query):
		return []Fault{{"sends a secret to a search engine", schemas.RiskHigh, WholeCall}}
	}
	return nil
}

// OfWord returns the faults of a URL in a command, or in the input of a tool that nod does not know. Servers
// of this machine and of its network do not count, because developers use them all the time. If the argument
// partial is true, only the shell knows a part of the URL.
func OfWord(raw string, partial bool) []Fault {
	u, err := url.Parse(raw)
	if err != nil {
		return unreadable(raw)
	}
	all := carried(u, partial)
	switch {
	case strings.EqualFold(u.Scheme, "file"):
		all = append(all, Fault{"reads a file of this machine by a URL", schemas.RiskHigh, AnyURL})
	case oddScheme.MatchString(u.Scheme):
		all = append(all, Fault{"uses a URL that is not a web address", schemas.RiskHigh, AnyURL})
	case isMetadata(u):
		all = append(all, metadataFault)
	case !isWeb(u):
		return all
	case hidesAddress(u):
		all = append(all, Fault{hidden, schemas.RiskHigh, AnyURL})
	case isAddress(u) && !isInner(u):
		all = append(all, Fault{bareAddress(u), schemas.RiskHigh, AnyURL})
	}
	for _, f := range size(u) {
		f.Needs = AnyURL
		all = append(all, f)
	}
	return all
}

// oddScheme matches schemes by which curl and similar programs talk to services that are no web servers.
var oddScheme = lazyregexp.New(`(?i)^(gopher|dict|ldaps?|tftp|smbs?|telnet|rtsp|jar|netdoc|phar|expect)$`)

// unreadable returns the faults of a URL that nod cannot parse.
func unreadable(raw string) []Fault {
	if strings.Contains(raw, "://") && (len(raw) > MaxSearched || IsSecret(raw)) {
		return []Fault{{"sends a password in the URL to " + unknownPlace, schemas.RiskHigh, WholeCall}}
	}
	return nil
}

// isWeb reports whether the URL is one of a web server, also with a prefix such as git+https.
func isWeb(u *url.URL) bool {
	scheme := strings.ToLower(u.Scheme)
	_, after, prefixed := strings.Cut(scheme, "+")
	if prefixed {
		scheme = after
	}
	return scheme == "https" || scheme == "http" || scheme == "ftp" || scheme == "ftps" || scheme == "ws" || scheme == "wss"
}

const unknownPlace = "an unknown place"

// plainHost matches a host that people cannot mistake for a text of nod.
var plainHost = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.-]{0,99}$|^[0-9A-Fa-f:.]{2,45}$`)

func hostOf(u *url.URL) string {
	if host := u.Hostname(); plainHost.MatchString(host) {
		return host
	}
	return unknownPlace
}
