package schemas

import (
	"slices"
	"strings"
)

// Callers is a set of roles that may call an endpoint. Each role calls in its own name.
type Callers uint8

// The roles of callers. Viewers and carriers are connectors. nod's owner calls in the name of any
// connector. Observers only read, and call as the connector ConnectorObserver.
const (
	Agents Callers = 1 << iota
	Viewers
	Carriers
	Owner
	Observers

	connectors = Viewers | Carriers
	everyone   = connectors | Owner   // all roles except agents and observers
	readers    = everyone | Observers // for queries; their replies contain no codes and no settings
)

// label names the callers in the table of messages. It returns "agent" or "connector", or "owner" if
// the owner may call the endpoint and viewers may not.
func (c Callers) label() string {
	switch {
	case c&Agents != 0:
		return "agent"
	case c&Owner != 0 && c&Viewers == 0:
		return "owner"
	}
	return "connector"
}

// Address is the subject of an endpoint, with the roles that may call the endpoint.
type Address struct {
	Verb string // the first token after "nod.v1."
	// Tokens is the number of tokens after the verb. The first of them is the caller's name. If Tokens is
	// 3, the others are the ids of a session and a request.
	Tokens int
	// Op is the operation, such as that of a query, if the subject's last token is fixed. Otherwise Op
	// is empty.
	Op      string
	Callers Callers

	messages []Message
}

// NamesRequest reports whether the subject names a session and a request. The message must then name
// the same session and the same request.
func (a Address) NamesRequest() bool { return a.Tokens == 3 }

// Endpoint is a subject on which engines reply to a message of type Q with a message of type
// R.
type Endpoint[Q, R any] struct{ Address }

// RequestReply is the reply to a request or a withdrawal. It is a *Decision or, while the request is
// pending, a Receipt.
type RequestReply interface{ requestReply() }

func (*Decision) requestReply() {}
func (Receipt) requestReply()   {}

// The placeholders in subject patterns.
const anyAgent, anySession, anyID, anyConnector = "<agent>", "<session>", "<id>", "<connector>"

// The endpoints. This table determines the rights of agents and connectors, the subjects that engines
// serve, and the endpoints' rows in Messages. Engines have a handler for each endpoint.
var (
	RequestEndpoint = endpoint[Request, RequestReply](Agents, RequestSubject(anyAgent, anySession, anyID), TypeRequest, "may I?",
		reply[Receipt](TypeReceipt, "stored; a person is asked"),
		reply[Decision](TypeDecision, "decided at once, or before"))
	WithdrawEndpoint = endpoint[Withdraw, RequestReply](Agents, WithdrawSubject(anyAgent, anySession, anyID), TypeWithdraw, "the agent no longer waits",
		reply[Decision](TypeDecision, "withdrawn, or the decision that came first"))
	HostResolvedEndpoint = endpoint[HostResolved, HostResolvedReply](Agents, HostResolvedSubject(anyAgent), TypeHostResolved, "the host went on without some answers",
		reply[HostResolvedReply](TypeHostResolvedReply, "the requests that it withdrew"))
	RunEndpoint = endpoint[Run, Running](Agents, RunSubject(anyAgent, anySession, anyID), TypeRun, "may the allowed command start contained now?",
		reply[Running](TypeRunning, "it may, once, in this container"))
	RanEndpoint = endpoint[Ran, OK](Agents, RanSubject(anyAgent, anySession, anyID), TypeRan, "the contained command has ended",
		reply[OK](TypeOK, "recorded"))
	AwaitEndpoint = endpoint[Await, AwaitReply](Agents, AwaitSubject(anyAgent), TypeAwait, "what is the state of these requests?",
		reply[AwaitReply](TypeAwaitReply, "the decisions made so far"))
	ShareEndpoint = endpoint[Share, Grants](Agents, GrantSubject(anyAgent), TypeShare, "give another session permissions of this one",
		reply[Grants](TypeGrants, "the new grant"))
	GateEndpoint = endpoint[Gate, GateReply](Agents, GateSubject(anyAgent), TypeGate, "does this session have a scheduled task's permissions?",
		reply[GateReply](TypeGateReply, "the missing permissions"))
	OwnSessionEndpoint = endpoint[Query, Session](Agents, SessionSubject(anyAgent), TypeQuery, "what are the permissions and grants of my session?",
		reply[Session](TypeSession, "the session, with its grants"))
	NoticesEndpoint = endpoint[Query, Notices](Agents, NoticesSubject(anyAgent), TypeQuery, "which notices has my session missed?",
		reply[Notices](TypeNotices, "the notices, which nod then forgets"))

	AnswerEndpoint = endpoint[Answer, *Decision](connectors, AnswerSubject(anyConnector, anySession, anyID), TypeAnswer, "a person's answer",
		reply[Decision](TypeDecision, "the answer is stored, or an equal one was before"))
	PresenceEndpoint = endpoint[Presence, Lock](connectors, PresenceSubject(anyConnector), TypePresence, "a client is there, or wants the input lock",
		reply[Lock](TypeLock, "the lock's holder and the end of its lease"))
	RegisterEndpoint = endpoint[Register, Registered](connectors, RegisterSubject(anyConnector), TypeRegister, "a worker is alive",
		reply[Registered](TypeRegistered, "the end of its lease"))
	ShownEndpoint = endpoint[Shown, Shown](Carriers, ShownSubject(anyConnector), TypeShown, "read, claim or write the entry of a shown prompt",
		reply[Shown](TypeShown, "the current entry"))
	DeliveryEndpoint = endpoint[Delivery, OK](Carriers, DeliverySubject(anyConnector), TypeDelivery, "a prompt was shown, failed, or reached no recipient",
		reply[OK](TypeOK, "received"))

	PendingEndpoint = endpoint[Query, Page](readers, QuerySubject(anyConnector, QueryPending), TypeQuery, "which requests are pending?",
		reply[Page](TypePage, "a page of them"))
	ShowEndpoint = endpoint[Query, Page](readers, QuerySubject(anyConnector, QueryShow), TypeQuery, "show one request",
		reply[Page](TypePage, "that request alone"))
	HistoryEndpoint = endpoint[Query, Page](readers, QuerySubject(anyConnector, QueryHistory), TypeQuery, "which decided requests are still stored, or in the log?",
		reply[Page](TypePage, "a page of them"))
	SessionEndpoint = endpoint[Query, Session](readers, QuerySubject(anyConnector, QuerySession), TypeQuery, "what is the state of this session?",
		reply[Session](TypeSession, "the session"))
	SettingsEndpoint = endpoint[Query, SettingsState](everyone, QuerySubject(anyConnector, QuerySettings), TypeQuery, "which settings are in force?",
		reply[SettingsState](TypeSettingsState, "the settings and their revision"))
	UnsettledEndpoint = endpoint[Query, Page](readers, QuerySubject(anyConnector, QueryUnsettled), TypeQuery, "which decided requests may still be shown as pending here?",
		reply[Page](TypePage, "a page of them"))
	GrantsEndpoint = endpoint[Query, Grants](readers, QuerySubject(anyConnector, QueryGrants), TypeQuery, "which standing answers are there?",
		reply[Grants](TypeGrants, "a page of them"))

	ChangeSessionEndpoint = endpoint[SessionChange, Session](Owner, ManageSubject(anyConnector, ManageSession), TypeSessionChange, "change a session",
		reply[Session](TypeSession, "the changed session"))
	ChangeSettingsEndpoint = endpoint[SettingsChange, SettingsState](Owner, ManageSubject(anyConnector, ManageSettings), TypeSettingsChange, "apply this settings.json",
		reply[SettingsState](TypeSettingsState, "applied by every live engine"))
	RevokeEndpoint = endpoint[Revoke, Grants](everyone, ManageSubject(anyConnector, ManageRevoke), TypeRevoke, "end this grant",
		reply[Grants](TypeGrants, "the grant, ended"))
	LeaveEndpoint = endpoint[LeaveRequest, Grants](everyone, ManageSubject(anyConnector, ManageLeave), TypeLeaveRequest, "allow a session's calls of limited risk while its approver is away",
		reply[Grants](TypeGrants, "the standing answer that allows them"))
	FreezeEndpoint = endpoint[FreezeRequest, FreezeState](everyone, ManageSubject(anyConnector, ManageFreeze), TypeFreezeRequest, "deny the requests of all agents, one agent or one session until a thaw",
		reply[FreezeState](TypeFreezeState, "the freezes in force, and how many requests were ended"))
	ThawEndpoint = endpoint[FreezeRequest, FreezeState](everyone, ManageSubject(anyConnector, ManageThaw), TypeFreezeRequest, "end the freeze",
		reply[FreezeState](TypeFreezeState, "the remaining freezes"))
	LoginCodeEndpoint = endpoint[LoginCode, LoginCode](everyone, ManageSubject(anyConnector, ManagePass), TypeLoginCode, "make a login code for this person; or, from the web inbox, exchange, invalidate or check a code, or read or write the encrypted login of a session",
		reply[LoginCode](TypeLoginCode, "the code and the inbox's address; the code's user; or whether it was spent"))
	PairingEndpoint = endpoint[Pairing, Pairing](Carriers|Owner, ManageSubject(anyConnector, ManagePair), TypePairing, "expect a code on a connector; or, from that connector, claim the code",
		reply[Pairing](TypePairing, "the identity that sent the code, if it arrived"))
)

// endpoint returns the endpoint for a subject pattern. The parameters typ and what are the type and
// the description of its request in the table of messages. The parameter replies lists its possible
// replies.
func endpoint[Q, R any](callers Callers, pattern, typ, what string, replies ...Message) Endpoint[Q, R] {
	tokens := strings.Split(strings.TrimPrefix(pattern, prefix), ".")
	a := Address{Verb: tokens[0], Tokens: len(tokens) - 1, Callers: callers}
	if last := tokens[len(tokens)-1]; !strings.HasPrefix(last, "<") {
		a.Op = last
	}
	a.messages = []Message{{typ, pattern, callers.label(), "engine", HowRequest, what, fresh[Q]}}
	for _, r := range replies {
		r.Subject, r.From, r.To, r.How = pattern, "engine", callers.label(), HowReply
		a.messages = append(a.messages, r)
	}
	return Endpoint[Q, R]{a}
}

func reply[R any](typ, what string) Message { return Message{Type: typ, What: what, New: fresh[R]} }

// Addresses lists every endpoint.
func Addresses() []Address {
	var all []Address
	for _, row := range table() {
		if a, ok := row.(interface{ address() Address }); ok {
			all = append(all, a.address())
		}
	}
	return all
}

func (a Address) address() Address { return a }
func (a Address) rows() []Message  { return a.messages }

// Rights returns the patterns of the subjects on which a role may publish to call its endpoints,
// without the prefix nod.v1. In a pattern, % stands for the caller's name and * for any other token.
// If the role may call every operation of a verb, Rights returns one pattern for the verb, such as
// "query.%.*". If the role may call only some operations, Rights returns one pattern for each of
// them, such as "manage.%.freeze".
func Rights(role Callers) []string {
	var patterns []string
	refused := map[string]bool{} // the verbs of which the role may call only some operations
	for _, a := range Addresses() {
		refused[a.Verb] = refused[a.Verb] || a.Callers&role == 0
	}
	for _, a := range Addresses() {
		if a.Callers&role == 0 {
			continue
		}
		pattern := a.Verb + ".%" + strings.Repeat(".*", a.Tokens-1)
		if refused[a.Verb] {
			pattern = a.Verb + ".%." + a.Op
		}
		if !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// Observable lists the subjects that observers may follow: the calls of agents, and all messages of
// engines to agents and viewers. Calls of connectors and of the owner are not among them, because they
// may contain code words, login codes and settings. Prompts are not among them, because a prompt is for
// one person.
func Observable() []string {
	subjects := []string{}
	for _, a := range Addresses() {
		if a.Callers&Agents != 0 {
			subjects = append(subjects, prefix+a.Verb+strings.Repeat(".*", a.Tokens))
		}
	}
	return append(subjects, DecisionSubject("*", "*", "*"), NoticeSubject("*", "*"), ViewSubject("*", "*"))
}

// Verbs lists the verbs of all endpoints.
func Verbs() []string {
	var verbs []string
	for _, a := range Addresses() {
		if !slices.Contains(verbs, a.Verb) {
			verbs = append(verbs, a.Verb)
		}
	}
	return verbs
}
