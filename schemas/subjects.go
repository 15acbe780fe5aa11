package schemas

import "strings"

// The message types.
const (
	TypeRequest        = "nod.v1.request"
	TypeReceipt        = "nod.v1.receipt"
	TypeDecision       = "nod.v1.decision"
	TypeWithdraw       = "nod.v1.withdraw"
	TypeAwait          = "nod.v1.await"
	TypeAwaitReply     = "nod.v1.await_reply"
	TypeAnswer         = "nod.v1.answer"
	TypePrompt         = "nod.v1.prompt"
	TypeQuery          = "nod.v1.query"
	TypePage           = "nod.v1.page"
	TypeRecord         = "nod.v1.record"
	TypeLogEntry       = "nod.v1.log"
	TypeSession        = "nod.v1.session"
	TypeSessionChange  = "nod.v1.session_change"
	TypePresence       = "nod.v1.presence"
	TypeLock           = "nod.v1.lock"
	TypeNotice         = "nod.v1.notice"
	TypeRegister       = "nod.v1.register"
	TypeRegistered     = "nod.v1.registered"
	TypeShown          = "nod.v1.shown"
	TypeDelivery       = "nod.v1.delivery"
	TypeOK             = "nod.v1.ok"
	TypeError          = "nod.v1.error"
	TypeSettingsChange = "nod.v1.settings_change"
	TypeSettingsState  = "nod.v1.settings_state"
	TypeGrants         = "nod.v1.grants"
	TypeRevoke         = "nod.v1.revoke"
	TypeShare          = "nod.v1.share"
	TypeGate           = "nod.v1.gate"
	TypeGateReply      = "nod.v1.gate_reply"
	TypeFreezeRequest          = "nod.v1.brake"
	TypeFreezeState         = "nod.v1.frozen"
	TypePairing        = "nod.v1.pairing"
	TypeLoginCode           = "nod.v1.pass"
	TypeHostResolved         = "nod.v1.passed"
	TypeHostResolvedReply    = "nod.v1.passed_reply"
)

const prefix = "nod.v1."

func subject(tokens ...string) string { return prefix + strings.Join(tokens, ".") }

// RequestSubject is where an agent asks.
func RequestSubject(agent, session, id string) string { return subject("request", agent, session, id) }

// WithdrawSubject is where an agent takes a request back.
func WithdrawSubject(agent, session, id string) string {
	return subject("withdraw", agent, session, id)
}

// AwaitSubject is where an agent asks how its requests stand.
func AwaitSubject(agent string) string { return subject("await", agent) }

// DecisionSubject is where an agent hears a decision.
func DecisionSubject(agent, session, id string) string {
	return subject("decision", agent, session, id)
}

// NoticeSubject is where an agent hears what decides nothing.
func NoticeSubject(agent, session string) string { return subject("notice", agent, session) }

// AnswerSubject is where a connector brings an answer.
func AnswerSubject(connector, session, id string) string {
	return subject("answer", connector, session, id)
}

// GrantSubject is where an agent shares what a session of its holds.
func GrantSubject(agent string) string { return subject("grant", agent) }

// GateSubject is where an agent asks for a scheduled task.
func GateSubject(agent string) string { return subject("gate", agent) }

// SessionSubject is where an agent reads what a session of its holds.
func SessionSubject(agent string) string { return subject("session", agent) }

// HostResolvedSubject is where an agent says that its host has gone on.
func HostResolvedSubject(agent string) string { return subject("passed", agent) }

// PromptSubject is where a carrier takes a prompt from.
func PromptSubject(connector, session, id string) string {
	return subject("prompt", connector, session, id)
}

// ViewSubject is where every viewer sees a request change.
func ViewSubject(session, id string) string { return subject("view", session, id) }

// PresenceSubject is where a connector says who is there.
func PresenceSubject(connector string) string { return subject("presence", connector) }

// RegisterSubject is where a connector's worker announces itself.
func RegisterSubject(connector string) string { return subject("register", connector) }

// ShownSubject is where a worker reads and writes what was shown.
func ShownSubject(connector string) string { return subject("shown", connector) }

// DeliverySubject is where a worker reports how a prompt fared.
func DeliverySubject(connector string) string { return subject("delivery", connector) }

// QuerySubject is where a connector reads what nod holds.
func QuerySubject(connector, what string) string { return subject("query", connector, what) }

// ManageSubject is where the owner changes things.
func ManageSubject(connector, op string) string { return subject("manage", connector, op) }

// LogSubject is where engines append what happened.
func LogSubject(session string) string { return subject("log", session) }

// TimerSubject holds the timer of a record; DueSubject is where it fires.
func TimerSubject(key string) string { return subject("timer", key) }

// DueSubject is where the timer of a record fires.
func DueSubject(key string) string { return subject("due", key) }

// What may be queried, and what may be managed.
const (
	QueryPending  = "pending"
	QueryShow     = "show"
	QuerySession  = "session"
	QuerySettings = "settings"
	QueryGrants   = "grants"
	QueryHistory  = "history"
	// QueryUnsettled lists what workers of a carrier may have shown as open and is
	// decided.
	QueryUnsettled = "unsettled"

	ManageSettings = "settings"
	ManageSession  = "session"
	ManageRevoke   = "revoke"
	ManageFreeze   = "freeze"
	ManageThaw     = "thaw"
	ManagePair     = "pair"
	ManagePass     = "pass"
)

// Tokens splits a subject of nod's behind the prefix it must have, such as
// "nod.v1.request."; ok is false where the prefix or the number of tokens is
// another, or a token is no id.
func Tokens(subj, verb string, n int) (tokens []string, ok bool) {
	rest, found := strings.CutPrefix(subj, prefix+verb+".")
	if !found {
		return nil, false
	}
	tokens = strings.Split(rest, ".")
	if len(tokens) != n {
		return nil, false
	}
	for _, t := range tokens {
		if !ValidID(t) {
			return nil, false
		}
	}
	return tokens, true
}

// The connectors that show everything pending to whoever may look: viewers
// whose people come to them. All others are carriers, which bring a prompt to
// one person.
const (
	ConnectorTerminal = "terminal"
	ConnectorWeb      = "web"
)

// Inbox reports whether a connector is such a viewer.
func Inbox(connector string) bool {
	return connector == ConnectorTerminal || connector == ConnectorWeb
}
