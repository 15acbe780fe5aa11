package roles

import (
	"strconv"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// share is a subject whose messages pass from one account to another: an export of one and an import
// of the other. Nothing else passes between accounts. A reply through an import is delivered in the importing
// account, so no reply subject can direct the server's reply to a subject of STORE.
type share struct {
	from, to Account
	stream   bool   // messages that reach to, in place of requests that reach from
	subject  string // in the account from
	local    string // in the account to, if it differs
	replies  bool   // a request may have several replies
}

// kind returns the word of a server's configuration for the share.
func (s share) kind() string {
	if s.stream {
		return "stream"
	}
	return "service"
}

// shares lists all that passes between accounts: EDGE imports from STORE, and OBSERVE from both.
func shares() []share {
	all := []share{
		{from: Store, to: Edge, subject: "$JS.API.CONSUMER.MSG.NEXT.permission_prompts.*", replies: true},
		{from: Store, to: Edge, subject: "$JS.API.CONSUMER.INFO.permission_prompts.*", local: "_NOD.consumer_info.*"},
		{from: Store, to: Edge, subject: "$JS.ACK.permission_prompts.>"},
		{from: Store, to: Edge, subject: "$JS.ACK.*.*.permission_prompts.>"},
		{from: Store, to: Observe, subject: "nod.v1.log.*", stream: true},
		{from: Store, to: Observe, subject: ObserverInbox + ">", stream: true},
	}
	for _, r := range observedRequests() {
		all = append(all, share{from: Store, to: Observe, subject: r.request, local: r.mapped})
	}
	for _, s := range schemas.Observable() {
		all = append(all, share{from: Edge, to: Observe, subject: s, stream: true})
	}
	for _, s := range append(observerQueries(), WatchSubject+">", UnwatchSubject+"*") {
		all = append(all, share{from: Edge, to: Observe, subject: s})
	}
	for _, s := range discoverySubjects() {
		all = append(all, share{from: Edge, to: Observe, subject: s, replies: true})
	}
	return all
}

// mappings lists the subjects that an account maps to others.
//
// In an account without JetStream, the server answers $JS.API requests with an error before an
// import can answer. Mappings to other subjects avoid this. The server applies mappings before
// it checks rights, so rights name the mapped subjects.
func mappings(a Account) []observed {
	switch a {
	case Edge:
		return []observed{{"$JS.API.CONSUMER.INFO.permission_prompts.*", "_NOD.consumer_info.*"}}
	case Observe:
		return append(observedRequests(), watchMappings...)
	default:
		return nil
	}
}

// numbered replaces the n-th * of a subject by $n.
func numbered(subject string) string {
	tokens := strings.Split(subject, ".")
	n := 0
	for i, token := range tokens {
		if token == "*" {
			n++
			tokens[i] = "$" + strconv.Itoa(n)
		}
	}
	return strings.Join(tokens, ".")
}
