package schemas

// Message is one row of the table of messages.
type Message struct {
	Type    string     // the message's type, such as TypeRequest
	Subject string     // the pattern of the message's subject or, for a reply, of its request's subject
	From    string     // the role that sends the message
	To      string     // the role that receives the message
	How     string     // one of the How constants
	What    string     // a description in one line, for docs/reference/messages.md
	New     func() any // returns a pointer to an empty struct of the message
}

// The ways in which a message travels.
const (
	HowRequest = "request-reply" // the sender waits for the reply
	HowReply   = "reply"         // the message is the reply to a request on this subject
	HowPublish = "publish"       // the message is not stored; an agent that missed a decision asks for the state of its request
	HowQueue   = "work queue"    // the message is stored until one worker acknowledges it
	HowFanOut  = "fan-out"       // the message is not stored; all subscribed viewers get it
	HowStored  = "stored"        // the message is kept in a stream or a bucket
)

// Messages lists every message with each of its subjects, roughly in the order in which a request uses
// them. A message on several subjects has several rows. Timers have no row, because this package has no
// struct for them.
func Messages() []Message {
	var all []Message
	for _, row := range table() {
		all = append(all, row.rows()...)
	}
	return all
}

// row is an endpoint with its request and its possible replies, or a single message without an endpoint.
type row interface{ rows() []Message }

func (m Message) rows() []Message { return []Message{m} }

func table() []row {
	return []row{
		RequestEndpoint,
		Message{TypeRecord, "$KV.pending_permissions." + Key(anySession, anyID), "engine", "engine", HowStored, "the request and its decision, until a while after it", fresh[Record]},
		Message{TypePrompt, PromptSubject(anyConnector, anySession, anyID), "outbox", "carrier", HowQueue, "show this to one person, or show its outcome", fresh[Prompt]},
		Message{TypePrompt, ViewSubject(anySession, anyID), "outbox", "viewer", HowFanOut, "the current state of the request", fresh[Prompt]},
		AnswerEndpoint,
		Message{TypeDecision, DecisionSubject(anyAgent, anySession, anyID), "engine", "agent", HowPublish, "the one outcome", fresh[Decision]},
		WithdrawEndpoint,
		HostResolvedEndpoint,
		RunEndpoint,
		RanEndpoint,
		AwaitEndpoint,
		Message{TypeNotice, NoticeSubject(anyAgent, anySession), "engine", "agent", HowPublish, "information that decides nothing", fresh[Notice]},

		ShareEndpoint,
		GateEndpoint,
		OwnSessionEndpoint,
		NoticesEndpoint,

		RegisterEndpoint,
		ShownEndpoint,
		DeliveryEndpoint,
		PresenceEndpoint,

		PendingEndpoint,
		ShowEndpoint,
		HistoryEndpoint,
		SessionEndpoint,
		SettingsEndpoint,
		UnsettledEndpoint,

		GrantsEndpoint,
		Message{TypeGrants, "$KV.permission_sessions.standing.<owner>.<grant_id>", "engine", "engine", HowStored, "one standing answer, of session.<session> or agent.<agent>", fresh[Grants]},

		ChangeSessionEndpoint,
		ChangeSettingsEndpoint,

		RevokeEndpoint,
		LeaveEndpoint,

		FreezeEndpoint,
		ThawEndpoint,
		Message{TypeFreezeState, "$KV.permission_settings.frozen", "engine", "engine", HowStored, "the freezes in force", fresh[FreezeState]},

		LoginCodeEndpoint,
		Message{TypeLoginCode, "$KV.permission_settings.pass.<hash>", "engine", "engine", HowStored, "a login code, valid once", fresh[LoginCode]},
		Message{TypeLoginCode, "$KV.permission_settings.spent.<hash>", "engine", "engine", HowStored, "a login link that was used, or a session that was ended", fresh[LoginCode]},
		Message{TypeLoginCode, "$KV.permission_settings.login.<hash>", "engine", "engine", HowStored, "the login of a web session at an issuer, encrypted by the inbox, until the session ends", fresh[LoginCode]},
		PairingEndpoint,
		Message{TypePairing, "$KV.permission_settings.pairing." + anyConnector, "engine", "engine", HowStored, "a code that a connector expects", fresh[Pairing]},

		Message{TypeLogEntry, LogSubject(anySession), "engine", "log", HowStored, "events, append only", fresh[LogEntry]},
		Message{TypeError, "nod.v1.>", "engine", "caller", HowReply, "the call failed; the reason", fresh[Error]},
	}
}

func fresh[T any]() any { return new(T) }
