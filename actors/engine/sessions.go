package engine

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// sessionKept is how long a session is kept after its last request.
	sessionKept = 60 * 24 * time.Hour
	// sessionFresh is the age at which the stored time of a session's last request is updated.
	sessionFresh = 24 * time.Hour
)

func sessionKey(session string) string { return "session." + session }

// claimSession returns a session, even if it belongs to another agent. It gives a session without an
// owner to this agent, and a session without a user to the given user, who may be empty. It stores the
// time of the last use at most once a day.
func (e *holdings) claimSession(ctx context.Context, agent, session, user string) (schemas.Session, error) {
	claimed := func(s *schemas.Session) bool {
		fresh := s.Agent == agent && e.clock.now().Sub(s.ActiveAt) < sessionFresh && !lacksUser(s, user)
		return s.Agent != "" && s.Agent != agent || fresh
	}
	known, err := e.sessionCache.renew(ctx, sessionKey(session))
	if err != nil && !errors.Is(err, bus.ErrNotFound) || err == nil && claimed(&known.value) {
		return known.value, err
	}
	return e.storeSession(ctx, session, func(s *schemas.Session) (bus.Edit, error) {
		if claimed(s) {
			return bus.Edit{}, nil
		}
		s.Agent, s.ActiveAt = agent, e.clock.now()
		if lacksUser(s, user) {
			s.User = user
		}
		return bus.Edit{Store: true, Kept: sessionKept}, nil
	})
}

func lacksUser(s *schemas.Session, user string) bool { return s.User == "" && user != "" }

// ownSession replies to an agent with one of its sessions and the session's grants, confirmed
// at the store.
func (e *holdings) ownSession(ctx context.Context, c *caller, q *schemas.Query) (schemas.Session, error) {
	agent := c.name
	if !schemas.ValidID(q.SessionID) {
		return schemas.Session{}, schemas.Errorf(schemas.CodeValidation, "session_id: expected 1 to 128 letters, digits, _ or -")
	}
	if _, err := e.requireSession(ctx, agent, q.SessionID, ""); err != nil {
		return schemas.Session{}, err
	}
	h, err := e.entitlementsOf(ctx, agent, q.SessionID)
	if err != nil {
		return schemas.Session{}, err
	}
	if err := refuseLaterSession(&h.session); err != nil {
		return schemas.Session{}, err
	}
	all := h.basisOf(func(schemas.SessionPermissions) bool { return false })
	if err := e.requireBasis(ctx, basis{q.SessionID, h.revision, all.answers}); err != nil {
		return schemas.Session{}, err
	}
	h.session.Grants = h.live(e.clock.now())
	return h.session, nil
}

// changeSession applies a change by nod's owner to a session, and creates the session if no agent has
// used it yet.
func (e *admin) changeSession(ctx context.Context, c *caller, change *schemas.SessionChange) (schemas.Session, error) {
	s, err := e.holdings.storeSession(ctx, change.SessionID, func(s *schemas.Session) (bus.Edit, error) {
		s.ActiveAt = e.clock.now()
		return bus.Edit{Store: true, Kept: sessionKept}, applyChange(s, change)
	})
	if err != nil {
		return schemas.Session{}, err
	}
	_, _, err = e.store.Log.Append(ctx, "session:"+change.SessionID+":"+bus.NewID(), schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: s.ActiveAt, Kind: schemas.LogSession, SessionID: change.SessionID, Actor: c.name,
	})
	if err != nil {
		return schemas.Session{}, err
	}
	return s, nil
}

func applyChange(s *schemas.Session, change *schemas.SessionChange) error {
	if change.TimeoutSeconds != nil {
		s.TimeoutSeconds = *change.TimeoutSeconds
	}
	if change.Background != nil {
		s.Background = *change.Background
	}
	if change.Unmanaged {
		s.Permissions = nil
	}
	if change.Permissions == nil {
		return nil
	}
	var set schemas.SessionPermissions
	if s.Permissions != nil {
		set = *s.Permissions
	}
	if dir := change.Permissions.WorkingDir; dir != nil {
		set.WorkingDir = ""
		if *dir != "" {
			dirs, err := cleanDirs("permissions.working_dir", []string{*dir})
			if err != nil {
				return err
			}
			set.WorkingDir = dirs[0]
		}
	}
	var err error
	if dirs := change.Permissions.ReadDirs; dirs != nil {
		if set.ReadDirs, err = cleanDirs("permissions.read_dirs", *dirs); err != nil {
			return err
		}
	}
	if dirs := change.Permissions.WriteDirs; dirs != nil {
		if set.WriteDirs, err = cleanDirs("permissions.write_dirs", *dirs); err != nil {
			return err
		}
	}
	if change.Permissions.Network != nil {
		set.Network = *change.Permissions.Network
	}
	s.Permissions = &set
	return nil
}

// cleanDirs checks the paths in dirs and returns their shortest forms. It does not follow links, so
// nod's owner must make sure that no path contains a link.
func cleanDirs(field string, dirs []string) ([]string, error) {
	clean := make([]string, len(dirs))
	for i, dir := range dirs {
		if err := policy.CheckPath(dir); err != nil {
			return nil, schemas.Errorf(schemas.CodeValidation, "%s: %q: %v", field, dir, err)
		}
		clean[i] = path.Clean(dir)
	}
	return clean, nil
}
