package roles

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Permissions are the subjects that one user may use. The server refuses all other subjects, so an empty
// list allows none. If All is set, every subject is allowed.
type Permissions struct {
	All         bool
	Publish     []string
	DenyPublish []string // subjects that are refused even if Publish allows them
	// A pattern in Subscribe must not end in "*". The server checks the ">" of a subscription as if it
	// were one token, so the pattern "_INBOX.*" would allow a subscription to "_INBOX.>".
	Subscribe []string
	// Responses lets the user reply once to each message that it receives, on any reply subject and
	// within two minutes. No deny rule limits these replies. Responses is therefore only for users to
	// whom no untrusted client can send a message.
	Responses bool
}

// Permissions returns all rights of the user with this ID.
func (id ID) Permissions() Permissions {
	p := rights(id)
	if !p.All {
		p.Subscribe = append(p.Subscribe, id.InboxPrefix()+".>")
	}
	return p
}

func rights(id ID) Permissions {
	switch id.Role {
	case Owner:
		return owner()
	case OwnerStore:
		return Permissions{All: true}
	case Engine:
		return engine()
	case EngineStore:
		return engineStore()
	case Inbox:
		return inbox(id.Name)
	case CarrierConnector:
		return worker(id.Name)
	case Agent:
		return agent(id.Name)
	case Observer:
		return observer()
	case TokenService:
		return tokenService()
	default:
		return Permissions{}
	}
}

// These are the subjects to which each role may send requests, without the prefix "nod.v1.". Each
// subject is a verb, then % for the role's own name, and * for each further token.
var (
	agentVerbs  = schemas.Rights(schemas.Agents)
	inboxVerbs  = schemas.Rights(schemas.Viewers)
	workerVerbs = schemas.Rights(schemas.Carriers)
	ownerVerbs  = schemas.Rights(schemas.Owner)

	observerVerbs = schemas.Rights(schemas.Observers)
)

func verbs(patterns []string, name string) []string {
	subjects := make([]string, len(patterns))
	for i, p := range patterns {
		subjects[i] = "nod.v1." + strings.Replace(p, "%", name, 1)
	}
	return subjects
}

// agent returns the rights of an agent: to send requests in its own name, and to receive its own
// decisions and notices.
func agent(name string) Permissions {
	return Permissions{
		Publish:   verbs(agentVerbs, name),
		Subscribe: []string{"nod.v1.decision." + name + ".>", "nod.v1.notice." + name + ".>"},
	}
}

// inbox returns the rights of an inbox connector: to see every request, and to answer in its own name. An
// inbox may also revoke grants, because a revocation never gives an agent more rights.
func inbox(name string) Permissions {
	return Permissions{
		Publish:   verbs(inboxVerbs, name),
		Subscribe: append([]string{"nod.v1.view.>"}, discovery("nod-connector-"+name)...),
		Responses: true, // replies to $SRV requests, which only nod's owner and observers may send
	}
}

// worker returns the rights of a worker: to take prompts from its connector's consumer in the account
// STORE, and to answer in the connector's name. It may also revoke a grant for a person; the engine
// checks whether that person may. Each pattern for acknowledgements has a fixed number of tokens,
// because an acknowledgement of another length could name another connector's consumer.
func worker(name string) Permissions {
	return Permissions{
		Publish: append(verbs(workerVerbs, name),
			"$JS.API.CONSUMER.MSG.NEXT.permission_prompts."+name,
			"_NOD.consumer_info."+name, // the subject to which the account maps $JS.API.CONSUMER.INFO.permission_prompts.<name>
			"$JS.ACK.permission_prompts."+name+".*.*.*.*.*",
			"$JS.ACK.*.*.permission_prompts."+name+".*.*.*.*.>"),
		Subscribe: discovery("nod-connector-" + name),
		Responses: true, // replies to $SRV requests, which only nod's owner and observers may send
	}
}

// discovery returns the $SRV subjects to which a NATS micro service with this name subscribes.
func discovery(service string) []string {
	var subjects []string
	for _, verb := range discoveryVerbs {
		subjects = append(subjects, verb, verb+"."+service, verb+"."+service+".>")
	}
	return subjects
}

// engine returns the rights of an engine in the account EDGE. An engine receives all requests, and
// asks other engines for their statistics. It has no right to publish requests or answers, because a
// client could name such a subject as its reply subject, and the engine's reply would then count as a
// request or an answer. It has no right to use JetStream, and needs none, because prompts are queued
// in the account STORE. It may reply to subjects that begin with ImportedReplies, because observers'
// requests come from another account.
func engine() Permissions {
	heard := append(discovery("nod-engine"), WatchSubject+">", UnwatchSubject+">")
	for _, verb := range schemas.Verbs() {
		heard = append(heard, "nod.v1."+verb+".>")
	}
	return Permissions{
		Publish:   []string{"_INBOX.>", ImportedReplies + ">", "nod.v1.decision.*.*.*", "nod.v1.notice.*.*", "nod.v1.view.*.*", "$SRV.STATS.nod-engine"},
		Subscribe: heard,
	}
}

// engineStore returns the rights of an engine in the account STORE: to write the stores, to queue
// prompts, and to append to the log without the right to purge it. It has no right to publish fired
// timers (nod.v1.due), because only the server publishes them.
func engineStore() Permissions {
	return Permissions{
		Publish: []string{
			"$KV.>", "nod.v1.prompt.*.*.*", "nod.v1.timer.*.*", "nod.v1.log.*",
			"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST",
			"$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.UPDATE.*", "$JS.API.STREAM.INFO.*",
			"$JS.API.STREAM.PURGE.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.DIRECT.GET.>",
			"$JS.API.CONSUMER.>", "$JS.ACK.>", "$JS.FC.>",
		},
		DenyPublish: []string{"$JS.API.STREAM.PURGE.permission_log"},
	}
}

// owner returns the rights of nod's owner in the account EDGE: to send management calls and queries
// in any connector's name, to answer as the terminal, to query the services, and to receive nod's
// messages.
func owner() Permissions {
	return Permissions{
		Publish:   append(append(verbs(ownerVerbs, "*"), verbs(inboxVerbs, Terminal)...), "$SRV.>"),
		Subscribe: []string{"nod.v1.>"},
	}
}

// ImportedReplies is the prefix of the server's own reply subjects for requests that another account
// imports from EDGE. Only observers' requests have such reply subjects.
const ImportedReplies = "_R_."

// OwnReply reports whether a reply subject is in the inbox of a role that may send requests to the
// given subject. An engine replies only to such inboxes. The engine's rights alone do not ensure
// this, because they must allow the engine to publish decisions. A request could therefore name
// another agent's decision subject as its reply subject, and the engine would publish there.
func OwnReply(subject, reply string) bool {
	tokens := strings.Split(subject, ".")
	if len(tokens) < 4 || tokens[0] != "nod" || tokens[1] != "v1" {
		return false
	}
	name := tokens[3]
	if name == ObserverName {
		return strings.HasPrefix(reply, ImportedReplies) &&
			slices.ContainsFunc(observerVerbs, func(p string) bool { return covers(p, tokens[2:]) })
	}
	asker := func(id ID, patterns []string) bool {
		return strings.HasPrefix(reply, id.InboxPrefix()+".") &&
			slices.ContainsFunc(patterns, func(p string) bool { return covers(p, tokens[2:]) })
	}
	connectorVerbs := workerVerbs
	if ConnectorID(name).Role == Inbox {
		connectorVerbs = inboxVerbs
	}
	return asker(AgentID(name), agentVerbs) ||
		asker(ConnectorID(name), connectorVerbs) ||
		asker(ID{Role: Owner}, ownerVerbs) ||
		name == Terminal && asker(ID{Role: Owner}, inboxVerbs)
}

// covers reports whether the tokens of a subject, without "nod.v1.", match a pattern. In the pattern, %
// and * match any token.
func covers(pattern string, subject []string) bool {
	if strings.Count(pattern, ".")+1 != len(subject) {
		return false
	}
	i := 0
	for token := range strings.SplitSeq(pattern, ".") {
		if token != "*" && token != "%" && token != subject[i] {
			return false
		}
		i++
	}
	return true
}
