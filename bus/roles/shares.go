package roles

import (
	"strconv"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// share is a subject that two accounts share. The account in the field from exports it, and the
// account in the field to imports it. Nothing else passes between accounts. The server delivers the
// reply to an imported request in the importing account, so no reply subject can direct a reply to a
// subject of STORE.
type share struct {
	from, to Account
	stream   bool   // true for messages, which pass from the exporting to the importing account; false for requests, which pass the other way
	subject  string // the subject in the exporting account
	local    string // the subject in the importing account; empty if it is the same
	replies  bool   // whether a request may have several replies
}

// kind returns the share's kind in the words of a server's configuration.
func (s share) kind() string {
	if s.stream {
		return "stream"
	}
	return "service"
}

// shares lists everything that passes between accounts. EDGE imports from STORE. OBSERVE imports from
// STORE and EDGE.
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

// mappings lists the subjects that an account maps to other subjects.
//
// In an account without JetStream, the server itself answers $JS.API requests with an error, and
// imports do not get them. If the account maps such a subject to another subject, the import gets the
// request. The server maps a subject before it checks rights, so rights name the subject after the
// mapping.
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

// numbered replaces the first * of a subject by $1, the second by $2, and so on.
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
