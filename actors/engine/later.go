package engine

import (
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// Engines of two versions share the stores during an upgrade. An engine keeps the members of a stored
// object that it does not know (schemas.Later), and allows nothing by the object, because an unknown
// member may be a limit. It still denies, times out, withdraws and revokes.

// refuseLater returns UNAVAILABLE for a decision that would allow a request whose record has unknown
// members. The caller tries again, and may then reach an engine that knows these members.
func refuseLater(entry *bus.Entry, d *schemas.Decision) error {
	if d == nil || d.Outcome != schemas.Allowed || !schemas.HasLater(&entry.Record) {
		return nil
	}
	return schemas.Errorf(schemas.CodeUnavailable, "%s has conditions of a later version of nod, which this engine does not know: let an engine of that version allow it, or deny it", entry.Key)
}

// limitedLater reports whether a standing answer may have limits that this engine does not know.
func limitedLater(g *schemas.StandingAnswer) bool {
	known := (g.Effect == "" || g.Effect == schemas.EffectAllow || g.Denies()) &&
		(g.Scope == "" || g.Scope == schemas.ScopeSession || g.Scope == schemas.ScopeAgent)
	return g.GrantID != "" && (!known || schemas.HasLater(g))
}

// setSession copies those facts about the request's session that the stages use.
func (s *askState) setSession(session *schemas.Session) {
	s.managed, s.ignores, s.later = session.Permissions != nil, session.Uncontained, schemas.HasLater(session)
}

// refuseLaterSession returns UNAVAILABLE for a session with unknown members.
func refuseLaterSession(session *schemas.Session) error {
	if !schemas.HasLater(session) {
		return nil
	}
	return schemas.Errorf(schemas.CodeUnavailable, "session %s has limits of a later version of nod, which this engine does not know; ask again, or update this engine", session.SessionID)
}

// refuseStale returns UNAVAILABLE if this engine has not read the settings for staleAfter, for
// example because a later version of nod has stored settings that this engine cannot read. The engine
// then does not know who may allow which requests.
func (e *base) refuseStale() error {
	if !e.settings.now().stale() {
		return nil
	}
	return schemas.Errorf(schemas.CodeUnavailable, "this engine cannot read the settings in force, so it allows nothing: ask again; its log has the reason")
}
