package schemas

// Message is one row of what crosses the bus.
type Message struct {
	Type    string     // such as TypeRequest
	Subject string     // its pattern; a reply's is that of the question
	From    string     // who sends it
	To      string     // who hears it
	How     string     // one of the How constants
	What    string     // one line for a reader
	New     func() any // makes a pointer to its empty noun
}

// How a message travels.
const (
	HowRequest = "request-reply" // somebody waits for the reply
	HowReply   = "reply"         // to a question on this subject
	HowPublish = "publish"       // heard by who listens now; re-asking recovers a lost one
	HowQueue   = "work queue"    // stored until one worker acknowledges it
	HowFanOut  = "fan-out"       // heard by everyone who listens now
	HowStored  = "stored"        // kept in a stream or a bucket
)

// Messages lists every noun on the bus with each subject it travels on, in the
// order in which a request meets them. A noun that travels on several subjects
// has several rows. (The timer of a record carries no noun: its firing alone
// is the message.)
func Messages() []Message {
	const agent, session, id, connector = "<agent>", "<session>", "<id>", "<connector>"
	var (
		request   = RequestSubject(agent, session, id)
		withdraw  = WithdrawSubject(agent, session, id)
		await     = AwaitSubject(agent)
		answer    = AnswerSubject(connector, session, id)
		presence  = PresenceSubject(connector)
		register  = RegisterSubject(connector)
		shown     = ShownSubject(connector)
		delivery  = DeliverySubject(connector)
		pending   = QuerySubject(connector, QueryPending)
		show      = QuerySubject(connector, QueryShow)
		sessionQ  = QuerySubject(connector, QuerySession)
		settingsQ = QuerySubject(connector, QuerySettings)
		historyQ  = QuerySubject(connector, QueryHistory)
		grantsQ   = QuerySubject(connector, QueryGrants)
		unsettled = QuerySubject(connector, QueryUnsettled)
		revokeM   = ManageSubject(connector, ManageRevoke)
		standing  = "$KV.permission_sessions.standing.<owner>.<grant_id>"
		sessionM  = ManageSubject(connector, ManageSession)
		settingsM = ManageSubject(connector, ManageSettings)
		freezeM   = ManageSubject(connector, ManageFreeze)
		passM     = ManageSubject(connector, ManagePass)
		pairM     = ManageSubject(connector, ManagePair)
		thawM     = ManageSubject(connector, ManageThaw)
		record    = "$KV.pending_permissions." + Key(session, id)
		everyCall = "nod.v1.>"
	)
	return []Message{
		{TypeRequest, request, "agent", "engine", HowRequest, "may I?", fresh[Request]},
		{TypeReceipt, request, "engine", "agent", HowReply, "stored; a person is asked", fresh[Receipt]},
		{TypeDecision, request, "engine", "agent", HowReply, "decided at once, or already", fresh[Decision]},
		{TypeRecord, record, "engine", "engine", HowStored, "the request's one key, until a while after its decision", fresh[Record]},
		{TypePrompt, PromptSubject(connector, session, id), "outbox", "carrier", HowQueue, "show this to one person, or settle it", fresh[Prompt]},
		{TypePrompt, ViewSubject(session, id), "outbox", "viewer", HowFanOut, "the request as it stands now", fresh[Prompt]},
		{TypeAnswer, answer, "connector", "engine", HowRequest, "what a person said", fresh[Answer]},
		{TypeDecision, answer, "engine", "connector", HowReply, "the answer is recorded, or the same was said before", fresh[Decision]},
		{TypeDecision, DecisionSubject(agent, session, id), "engine", "agent", HowPublish, "the one outcome", fresh[Decision]},
		{TypeWithdraw, withdraw, "agent", "engine", HowRequest, "nobody waits for this any more", fresh[Withdraw]},
		{TypeDecision, withdraw, "engine", "agent", HowReply, "withdrawn, or the decision that came first", fresh[Decision]},
		{TypeHostResolved, HostResolvedSubject(agent), "agent", "engine", HowRequest, "the host went on without some answers", fresh[HostResolved]},
		{TypeHostResolvedReply, HostResolvedSubject(agent), "engine", "agent", HowReply, "what was withdrawn", fresh[HostResolvedReply]},
		{TypeAwait, await, "agent", "engine", HowRequest, "how do these stand?", fresh[Await]},
		{TypeAwaitReply, await, "engine", "agent", HowReply, "their decisions, as far as there are any", fresh[AwaitReply]},
		{TypeNotice, NoticeSubject(agent, session), "engine", "agent", HowPublish, "something that decides nothing", fresh[Notice]},

		{TypeShare, GrantSubject(agent), "agent", "engine", HowRequest, "let another session hold what this one holds", fresh[Share]},
		{TypeGrants, GrantSubject(agent), "engine", "agent", HowReply, "the grant that it got", fresh[Grants]},
		{TypeGate, GateSubject(agent), "agent", "engine", HowRequest, "may this scheduled task do what it does?", fresh[Gate]},
		{TypeGateReply, GateSubject(agent), "engine", "agent", HowReply, "what it lacks", fresh[GateReply]},
		{TypeQuery, SessionSubject(agent), "agent", "engine", HowRequest, "what does this session of mine hold?", fresh[Query]},
		{TypeSession, SessionSubject(agent), "engine", "agent", HowReply, "the session, with the grants that count in it", fresh[Session]},

		{TypeRegister, register, "connector", "engine", HowRequest, "a worker is alive", fresh[Register]},
		{TypeRegistered, register, "engine", "connector", HowReply, "until when its lease runs", fresh[Registered]},
		{TypeShown, shown, "connector", "engine", HowRequest, "read, claim or write where a prompt was shown", fresh[Shown]},
		{TypeShown, shown, "engine", "connector", HowReply, "the entry as it is now", fresh[Shown]},
		{TypeDelivery, delivery, "connector", "engine", HowRequest, "a prompt was shown, failed, or reached nobody", fresh[Delivery]},
		{TypeOK, delivery, "engine", "connector", HowReply, "noted", fresh[OK]},
		{TypePresence, presence, "connector", "engine", HowRequest, "a client is there, or wants the input lock", fresh[Presence]},
		{TypeLock, presence, "engine", "connector", HowReply, "who holds the lock, until when", fresh[Lock]},

		{TypeQuery, pending, "connector", "engine", HowRequest, "what is undecided?", fresh[Query]},
		{TypePage, pending, "engine", "connector", HowReply, "a page of it", fresh[Page]},
		{TypeQuery, show, "connector", "engine", HowRequest, "show one request", fresh[Query]},
		{TypePage, show, "engine", "connector", HowReply, "that request alone", fresh[Page]},
		{TypeQuery, historyQ, "connector", "engine", HowRequest, "what was decided, as far as it is kept?", fresh[Query]},
		{TypePage, historyQ, "engine", "connector", HowReply, "a page of it", fresh[Page]},
		{TypeQuery, sessionQ, "connector", "engine", HowRequest, "what is this session?", fresh[Query]},
		{TypeSession, sessionQ, "engine", "connector", HowReply, "the session", fresh[Session]},
		{TypeQuery, settingsQ, "connector", "engine", HowRequest, "which settings are in force?", fresh[Query]},
		{TypeSettingsState, settingsQ, "engine", "connector", HowReply, "the settings and their revision", fresh[SettingsState]},
		{TypeQuery, unsettled, "connector", "engine", HowRequest, "what is shown here as open, and is decided?", fresh[Query]},
		{TypePage, unsettled, "engine", "connector", HowReply, "a page of it", fresh[Page]},

		{TypeQuery, grantsQ, "connector", "engine", HowRequest, "what has been allowed beyond one call?", fresh[Query]},
		{TypeGrants, grantsQ, "engine", "connector", HowReply, "a page of it", fresh[Grants]},
		{TypeGrants, standing, "engine", "engine", HowStored, "one standing answer, of session.<session> or agent.<agent>", fresh[Grants]},

		{TypeSessionChange, sessionM, "owner", "engine", HowRequest, "set what the owner may set of a session", fresh[SessionChange]},
		{TypeSession, sessionM, "engine", "owner", HowReply, "the session as it is now", fresh[Session]},
		{TypeSettingsChange, settingsM, "owner", "engine", HowRequest, "apply this settings.json", fresh[SettingsChange]},
		{TypeSettingsState, settingsM, "engine", "owner", HowReply, "applied by every live engine", fresh[SettingsState]},

		{TypeRevoke, revokeM, "connector", "engine", HowRequest, "end this grant", fresh[Revoke]},
		{TypeGrants, revokeM, "engine", "connector", HowReply, "the grant, ended", fresh[Grants]},

		{TypeFreezeRequest, freezeM, "connector", "engine", HowRequest, "deny everything of these until a thaw", fresh[FreezeRequest]},
		{TypeFreezeState, freezeM, "engine", "connector", HowReply, "what is frozen, and how much of it was ended", fresh[FreezeState]},
		{TypeFreezeRequest, thawM, "connector", "engine", HowRequest, "take the brake off", fresh[FreezeRequest]},
		{TypeFreezeState, thawM, "engine", "connector", HowReply, "what is still frozen", fresh[FreezeState]},
		{TypeFreezeState, "$KV.permission_settings.frozen", "engine", "engine", HowStored, "what is frozen", fresh[FreezeState]},

		{TypeLoginCode, passM, "connector", "engine", HowRequest, "let this person in on the web; or, from the web, whose code is this? or this one counts no more; or, does it?", fresh[LoginCode]},
		{TypeLoginCode, passM, "engine", "connector", HowReply, "the code, and where it counts; or the user whose it is; or whether it was spent", fresh[LoginCode]},
		{TypeLoginCode, "$KV.permission_settings.pass.<hash>", "engine", "engine", HowStored, "a code that lets somebody in, once", fresh[LoginCode]},
		{TypeLoginCode, "$KV.permission_settings.spent.<hash>", "engine", "engine", HowStored, "a login link that was used, or a session that was ended", fresh[LoginCode]},
		{TypePairing, pairM, "owner", "engine", HowRequest, "await a code on a connector; or, from that connector, this is the code", fresh[Pairing]},
		{TypePairing, pairM, "engine", "owner", HowReply, "who sent the code, if anybody has", fresh[Pairing]},
		{TypePairing, "$KV.permission_settings.pairing." + connector, "engine", "engine", HowStored, "a code that is awaited", fresh[Pairing]},

		{TypeLogEntry, LogSubject(session), "engine", "log", HowStored, "what happened, append only", fresh[LogEntry]},
		{TypeError, everyCall, "engine", "whoever asked", HowReply, "why not", fresh[Error]},
	}
}

func fresh[T any]() any { return new(T) }
