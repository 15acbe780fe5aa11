package schemas

import "strings"

// The message types.
const (
	TypeRequest           = "nod.v1.request"
	TypeReceipt           = "nod.v1.receipt"
	TypeDecision          = "nod.v1.decision"
	TypeWithdraw          = "nod.v1.withdraw"
	TypeAwait             = "nod.v1.await"
	TypeAwaitReply        = "nod.v1.await_reply"
	TypeAnswer            = "nod.v1.answer"
	TypePrompt            = "nod.v1.prompt"
	TypeQuery             = "nod.v1.query"
	TypePage              = "nod.v1.page"
	TypeRecord            = "nod.v1.record"
	TypeLogEntry          = "nod.v1.log"
	TypeSession           = "nod.v1.session"
	TypeSessionChange     = "nod.v1.session_change"
	TypePresence          = "nod.v1.presence"
	TypeLock              = "nod.v1.lock"
	TypeNotice            = "nod.v1.notice"
	TypeNotices           = "nod.v1.notices"
	TypeRegister          = "nod.v1.register"
	TypeRegistered        = "nod.v1.registered"
	TypeShown             = "nod.v1.shown"
	TypeDelivery          = "nod.v1.delivery"
	TypeOK                = "nod.v1.ok"
	TypeError             = "nod.v1.error"
	TypeSettingsChange    = "nod.v1.settings_change"
	TypeSettingsState     = "nod.v1.settings_state"
	TypeGrants            = "nod.v1.grants"
	TypeRevoke            = "nod.v1.revoke"
	TypeLeaveRequest      = "nod.v1.leave"
	TypeShare             = "nod.v1.share"
	TypeGate              = "nod.v1.gate"
	TypeGateReply         = "nod.v1.gate_reply"
	TypeFreezeRequest     = "nod.v1.brake"
	TypeFreezeState       = "nod.v1.frozen"
	TypePairing           = "nod.v1.pairing"
	TypeLoginCode         = "nod.v1.pass"
	TypeHostResolved      = "nod.v1.passed"
	TypeHostResolvedReply = "nod.v1.passed_reply"
	TypeRun               = "nod.v1.run"
	TypeRunning           = "nod.v1.running"
	TypeRan               = "nod.v1.ran"
)

const prefix = "nod.v1."

func subject(tokens ...string) string { return prefix + strings.Join(tokens, ".") }

// RequestSubject carries an agent's requests.
func RequestSubject(agent, session, id string) string { return subject("request", agent, session, id) }

// WithdrawSubject carries an agent's withdrawals.
func WithdrawSubject(agent, session, id string) string {
	return subject("withdraw", agent, session, id)
}

// RunSubject carries an agent's Run messages, which ask whether a contained command may start.
func RunSubject(agent, session, id string) string { return subject("run", agent, session, id) }

// RanSubject carries an agent's Ran messages, which report the end of contained commands.
func RanSubject(agent, session, id string) string { return subject("ran", agent, session, id) }

// AwaitSubject carries an agent's Await messages.
func AwaitSubject(agent string) string { return subject("await", agent) }

// DecisionSubject carries decisions to an agent.
func DecisionSubject(agent, session, id string) string {
	return subject("decision", agent, session, id)
}

// NoticeSubject carries notices for an agent's session.
func NoticeSubject(agent, session string) string { return subject("notice", agent, session) }

// AnswerSubject carries answers from a connector.
func AnswerSubject(connector, session, id string) string {
	return subject("answer", connector, session, id)
}

// GrantSubject carries an agent's Share messages.
func GrantSubject(agent string) string { return subject("grant", agent) }

// GateSubject carries an agent's Gate messages, which check permissions for scheduled tasks.
func GateSubject(agent string) string { return subject("gate", agent) }

// SessionSubject carries an agent's queries about its own sessions.
func SessionSubject(agent string) string { return subject("session", agent) }

// NoticesSubject carries an agent's requests for the notices that nod keeps for its sessions.
func NoticesSubject(agent string) string { return subject("notices", agent) }

// HostResolvedSubject carries an agent's HostResolved messages.
func HostResolvedSubject(agent string) string { return subject("passed", agent) }

// PromptSubject carries prompts to a carrier.
func PromptSubject(connector, session, id string) string {
	return subject("prompt", connector, session, id)
}

// ViewSubject carries every change of a request to all viewers.
func ViewSubject(session, id string) string { return subject("view", session, id) }

// PresenceSubject carries a connector's Presence messages about its clients.
func PresenceSubject(connector string) string { return subject("presence", connector) }

// RegisterSubject carries a connector's Register messages about its workers.
func RegisterSubject(connector string) string { return subject("register", connector) }

// ShownSubject carries a carrier's Shown messages, which read, claim and write entries of shown_prompts.
func ShownSubject(connector string) string { return subject("shown", connector) }

// DeliverySubject carries a carrier's Delivery messages.
func DeliverySubject(connector string) string { return subject("delivery", connector) }

// QuerySubject carries the queries of a connector.
func QuerySubject(connector, query string) string { return subject("query", connector, query) }

// ManageSubject carries changes of sessions, settings, grants, freezes, pairings and login codes.
func ManageSubject(connector, op string) string { return subject("manage", connector, op) }

// LogSubject carries log entries.
func LogSubject(session string) string { return subject("log", session) }

// CheckpointSubject carries the checkpoints of the log. Its last token is no valid id, so it differs
// from the log subject of every session.
const CheckpointSubject = prefix + "log.~checkpoint"

// TimerSubject is the subject of a record's timer before the timer fires. A fired timer is on
// DueSubject.
func TimerSubject(key string) string { return subject("timer", key) }

// DueSubject carries the fired timer of a record.
func DueSubject(key string) string { return subject("due", key) }

// The operations of queries and of management, which are the last tokens of QuerySubject and
// ManageSubject.
const (
	QueryPending  = "pending"
	QueryShow     = "show"
	QuerySession  = "session"
	QuerySettings = "settings"
	QueryGrants   = "grants"
	QueryHistory  = "history"
	// QueryUnsettled asks for the decided requests that a carrier may still show as pending.
	QueryUnsettled = "unsettled"

	ManageSettings = "settings"
	ManageSession  = "session"
	ManageRevoke   = "revoke"
	ManageLeave    = "leave"
	ManageFreeze   = "freeze"
	ManageThaw     = "thaw"
	ManagePair     = "pair"
	ManagePass     = "pass"
)

// Tokens returns the n tokens of a subject that follow "nod.v1.<verb>.". The result ok is false if
// the subject has another prefix or number of tokens, or if a token is no valid id.
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

// These connectors are viewers, which show every pending request. All other connectors are carriers,
// which send each prompt to one person.
const (
	ConnectorTerminal = "terminal"
	ConnectorWeb      = "web"
)

// ConnectorObserver stands for the connector's name in queries of observers. No connector may have this
// name.
const ConnectorObserver = "observer"

// IsViewer reports whether a connector is a viewer, which people use as an inbox.
func IsViewer(connector string) bool {
	return connector == ConnectorTerminal || connector == ConnectorWeb
}

// IsSecondDevice reports whether people use the connector on a device on which no agents run, such as
// a phone. Voice is no second device, because its client may run on the agents' machine, where agents
// could read the client's token or speak themselves.
func IsSecondDevice(connector string) bool {
	return !IsViewer(connector) && connector != ClientVoice
}
