package connector

import (
	"context"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// Owner is a client for the changes that only nod's owner may make, such as settings. If nod
// does not reply, a call retries until its context ends.
type Owner struct {
	conn      *bus.Conn
	connector string
}

// NewOwner returns an Owner that acts under the name of a connector. The connection c must use the
// key of nod's owner.
func NewOwner(c *bus.Conn, connector string) *Owner { return &Owner{c, connector} }

// ApplySettings stores the content of a settings.json, and returns the settings in force. If
// nod refuses the content, nothing changes.
func (o *Owner) ApplySettings(ctx context.Context, data []byte) (schemas.SettingsState, error) {
	var state schemas.SettingsState
	err := o.conn.CallInto(ctx, schemas.ManageSubject(o.connector, schemas.ManageSettings), schemas.SettingsChange{Type: schemas.TypeSettingsChange, Settings: data}, &state)
	return state, err
}

// followWithin is how long Follow waits for engines to apply new settings.
const followWithin = 10 * time.Second

// Follow waits until every engine that replies reports this revision of the settings, but no longer
// than followWithin. It returns the ids of the engines that have not reported the revision. The error
// means that no engine replied.
func (o *Owner) Follow(ctx context.Context, revision uint64) (laggards []string, err error) {
	return o.follow(ctx, "settings_revision", revision)
}

func (o *Owner) follow(ctx context.Context, revisionName string, revision uint64) (laggards []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, followWithin)
	defer cancel()
	return o.conn.Follow(ctx, "nod-engine", revisionName, revision, nil)
}

// Pair opens a pairing on a connector. A person then proves an identity by sending the pairing's code
// on that connector. If the parameter code is not empty, Pair opens nothing and returns the open
// pairing with this code. The field From of that pairing is the identity that has sent the code, or
// nil. The error is NOT_FOUND if that pairing has ended.
func (o *Owner) Pair(ctx context.Context, on, code string) (schemas.Pairing, error) {
	var p schemas.Pairing
	err := o.conn.CallInto(ctx, schemas.ManageSubject(o.connector, schemas.ManagePair), schemas.Pairing{Type: schemas.TypePairing, Connector: on, Code: code}, &p)
	return p, err
}

// Settings returns the settings in force.
func (o *Owner) Settings(ctx context.Context) (schemas.SettingsState, error) {
	return NewDesk(o.conn, o.connector).Settings(ctx)
}

// Grants lists the standing answers of a session, or of all sessions if session is empty.
func (o *Owner) Grants(ctx context.Context, session string) ([]schemas.StandingAnswer, error) {
	return NewDesk(o.conn, o.connector).Grants(ctx, session)
}

// Revoke ends a grant. A request that is sent after Revoke returns is decided without the grant.
func (o *Owner) Revoke(ctx context.Context, g *schemas.StandingAnswer) error {
	return revoke(ctx, o.conn, o.connector, g, nil)
}

// Session returns one session.
func (o *Owner) Session(ctx context.Context, id string) (schemas.Session, error) {
	var s schemas.Session
	err := o.conn.CallInto(ctx, schemas.QuerySubject(o.connector, schemas.QuerySession), schemas.Query{Type: schemas.TypeQuery, SessionID: id}, &s)
	return s, err
}

// ChangeSession changes one session, and returns once every running engine applies the change. If
// some engines do not apply it within followWithin, the error names these engines, but the change
// stays stored.
func (o *Owner) ChangeSession(ctx context.Context, c schemas.SessionChange) (schemas.Session, error) {
	c.Type = schemas.TypeSessionChange
	var s schemas.Session
	if err := o.conn.CallInto(ctx, schemas.ManageSubject(o.connector, schemas.ManageSession), c, &s); err != nil {
		return s, err
	}
	laggards, err := o.follow(ctx, "sessions_revision", s.Revision)
	if err == nil && len(laggards) > 0 {
		err = schemas.Errorf(schemas.CodeUnavailable, "the change is stored, but these engines have not received it yet: %v; see their logs", laggards)
	}
	return s, err
}
