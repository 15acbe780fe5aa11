package schemas

// Message is one row of the table of messages.
type Message struct {
	Type    string     // such as TypeRequest
	Subject string     // a pattern; for a reply, the pattern of its request
	From    string     // sender
	To      string     // receiver
	How     string     // one of the How constants
	What    string     // one line for the reader of ACTORS.md
	New     func() any // returns a pointer to an empty noun
}

// How a message travels.
const (
	HowRequest = "request-reply" // the sender waits for the reply
	HowReply   = "reply"         // the reply to a request on this subject
	HowPublish = "publish"       // reaches current subscribers; a receiver that missed it asks again
	HowQueue   = "work queue"    // stored until one worker acknowledges it
	HowFanOut  = "fan-out"       // reaches all current subscribers
	HowStored  = "stored"        // kept in a stream or a bucket
)

// Messages lists every noun with each of its subjects, in the order in which a request
// needs them. A noun on several subjects has several rows. A record's timer has no row,
// because it is not a noun.
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
		{TypeDecision, request, "engine", "agent", HowReply, "decided at once, or before", fresh[Decision]},
		{TypeRecord, record, "engine", "engine", HowStored, "the request and its decision, until a while after it", fresh[Record]},
		{TypePrompt, PromptSubject(connector, session, id), "outbox", "carrier", HowQueue, "show this to one person, or show its outcome", fresh[Prompt]},
		{TypePrompt, ViewSubject(session, id), "outbox", "viewer", HowFanOut, "the current state of the request", fresh[Prompt]},
		{TypeAnswer, answer, "connector", "engine", HowRequest, "a person's answer", fresh[Answer]},
		{TypeDecision, answer, "engine", "connector", HowReply, "the answer is stored, or an equal one was before", fresh[Decision]},
		{TypeDecision, DecisionSubject(agent, session, id), "engine", "agent", HowPublish, "the one outcome", fresh[Decision]},
		{TypeWithdraw, withdraw, "agent", "engine", HowRequest, "the agent no longer waits", fresh[Withdraw]},
		{TypeDecision, withdraw, "engine", "agent", HowReply, "withdrawn, or the decision that came first", fresh[Decision]},
		{TypeHostResolved, HostResolvedSubject(agent), "agent", "engine", HowRequest, "the host went on without some answers", fresh[HostResolved]},
		{TypeHostResolvedReply, HostResolvedSubject(agent), "engine", "agent", HowReply, "the requests that it withdrew", fresh[HostResolvedReply]},
		{TypeAwait, await, "agent", "engine", HowRequest, "what is the state of these requests?", fresh[Await]},
		{TypeAwaitReply, await, "engine", "agent", HowReply, "the decisions made so far", fresh[AwaitReply]},
		{TypeNotice, NoticeSubject(agent, session), "engine", "agent", HowPublish, "information that decides nothing", fresh[Notice]},

		{TypeShare, GrantSubject(agent), "agent", "engine", HowRequest, "give another session permissions of this one", fresh[Share]},
		{TypeGrants, GrantSubject(agent), "engine", "agent", HowReply, "the new grant", fresh[Grants]},
		{TypeGate, GateSubject(agent), "agent", "engine", HowRequest, "does this session have a scheduled task's permissions?", fresh[Gate]},
		{TypeGateReply, GateSubject(agent), "engine", "agent", HowReply, "the missing permissions", fresh[GateReply]},
		{TypeQuery, SessionSubject(agent), "agent", "engine", HowRequest, "what are the permissions and grants of my session?", fresh[Query]},
		{TypeSession, SessionSubject(agent), "engine", "agent", HowReply, "the session, with its grants", fresh[Session]},

		{TypeRegister, register, "connector", "engine", HowRequest, "a worker is alive", fresh[Register]},
		{TypeRegistered, register, "engine", "connector", HowReply, "the end of its lease", fresh[Registered]},
		{TypeShown, shown, "connector", "engine", HowRequest, "read, claim or write the entry of a shown prompt", fresh[Shown]},
		{TypeShown, shown, "engine", "connector", HowReply, "the current entry", fresh[Shown]},
		{TypeDelivery, delivery, "connector", "engine", HowRequest, "a prompt was shown, failed, or reached no recipient", fresh[Delivery]},
		{TypeOK, delivery, "engine", "connector", HowReply, "received", fresh[OK]},
		{TypePresence, presence, "connector", "engine", HowRequest, "a client is there, or wants the input lock", fresh[Presence]},
		{TypeLock, presence, "engine", "connector", HowReply, "the lock's holder and the end of its lease", fresh[Lock]},

		{TypeQuery, pending, "connector", "engine", HowRequest, "which requests are pending?", fresh[Query]},
		{TypePage, pending, "engine", "connector", HowReply, "a page of them", fresh[Page]},
		{TypeQuery, show, "connector", "engine", HowRequest, "show one request", fresh[Query]},
		{TypePage, show, "engine", "connector", HowReply, "that request alone", fresh[Page]},
		{TypeQuery, historyQ, "connector", "engine", HowRequest, "which decided requests are still stored?", fresh[Query]},
		{TypePage, historyQ, "engine", "connector", HowReply, "a page of them", fresh[Page]},
		{TypeQuery, sessionQ, "connector", "engine", HowRequest, "what is the state of this session?", fresh[Query]},
		{TypeSession, sessionQ, "engine", "connector", HowReply, "the session", fresh[Session]},
		{TypeQuery, settingsQ, "connector", "engine", HowRequest, "which settings are in force?", fresh[Query]},
		{TypeSettingsState, settingsQ, "engine", "connector", HowReply, "the settings and their revision", fresh[SettingsState]},
		{TypeQuery, unsettled, "connector", "engine", HowRequest, "which decided requests may still be shown as pending here?", fresh[Query]},
		{TypePage, unsettled, "engine", "connector", HowReply, "a page of them", fresh[Page]},

		{TypeQuery, grantsQ, "connector", "engine", HowRequest, "which standing answers are there?", fresh[Query]},
		{TypeGrants, grantsQ, "engine", "connector", HowReply, "a page of them", fresh[Grants]},
		{TypeGrants, standing, "engine", "engine", HowStored, "one standing answer, of session.<session> or agent.<agent>", fresh[Grants]},

		{TypeSessionChange, sessionM, "owner", "engine", HowRequest, "change a session", fresh[SessionChange]},
		{TypeSession, sessionM, "engine", "owner", HowReply, "the changed session", fresh[Session]},
		{TypeSettingsChange, settingsM, "owner", "engine", HowRequest, "apply this settings.json", fresh[SettingsChange]},
		{TypeSettingsState, settingsM, "engine", "owner", HowReply, "applied by every live engine", fresh[SettingsState]},

		{TypeRevoke, revokeM, "connector", "engine", HowRequest, "end this grant", fresh[Revoke]},
		{TypeGrants, revokeM, "engine", "connector", HowReply, "the grant, ended", fresh[Grants]},

		{TypeFreezeRequest, freezeM, "connector", "engine", HowRequest, "deny the requests of all agents, one agent or one session until a thaw", fresh[FreezeRequest]},
		{TypeFreezeState, freezeM, "engine", "connector", HowReply, "the freezes in force, and how many requests were ended", fresh[FreezeState]},
		{TypeFreezeRequest, thawM, "connector", "engine", HowRequest, "end the freeze", fresh[FreezeRequest]},
		{TypeFreezeState, thawM, "engine", "connector", HowReply, "the remaining freezes", fresh[FreezeState]},
		{TypeFreezeState, "$KV.permission_settings.frozen", "engine", "engine", HowStored, "the freezes in force", fresh[FreezeState]},

		{TypeLoginCode, passM, "connector", "engine", HowRequest, "make a login code for this person; or, from the web inbox, exchange, invalidate or check a code", fresh[LoginCode]},
		{TypeLoginCode, passM, "engine", "connector", HowReply, "the code and the inbox's address; the code's user; or whether it was spent", fresh[LoginCode]},
		{TypeLoginCode, "$KV.permission_settings.pass.<hash>", "engine", "engine", HowStored, "a login code, valid once", fresh[LoginCode]},
		{TypeLoginCode, "$KV.permission_settings.spent.<hash>", "engine", "engine", HowStored, "a login link that was used, or a session that was ended", fresh[LoginCode]},
		{TypePairing, pairM, "owner", "engine", HowRequest, "expect a code on a connector; or, from that connector, claim the code", fresh[Pairing]},
		{TypePairing, pairM, "engine", "owner", HowReply, "the identity that sent the code, if it arrived", fresh[Pairing]},
		{TypePairing, "$KV.permission_settings.pairing." + connector, "engine", "engine", HowStored, "a code that a connector expects", fresh[Pairing]},

		{TypeLogEntry, LogSubject(session), "engine", "log", HowStored, "events, append only", fresh[LogEntry]},
		{TypeError, everyCall, "engine", "caller", HowReply, "the call failed; the reason", fresh[Error]},
	}
}

func fresh[T any]() any { return new(T) }
