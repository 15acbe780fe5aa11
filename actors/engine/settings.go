package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// settingsKey is the key of the settings in the bucket permission_settings.
const settingsKey = "settings"

// settingsSnapshot is one version of the settings, compiled.
type settingsSnapshot struct {
	revision uint64
	settings *schemas.Settings
	policy   *policy.Policy
	confirms []confirmRule // the conditions for allowing risky requests
	// escalations are the rules of approvers.escalation, in order.
	escalations []escalationRule
	needs       map[string]policy.Access // the access that each tool needs in a managed session, by tool name
	read        time.Time                // when the last successful reading from the store began
}

// stale reports whether the settings are so old that this engine may allow nothing by them.
func (s settingsSnapshot) stale() bool { return time.Since(s.read) >= staleAfter }

// settings holds the newest settings that this engine has read. These settings are in force on
// this engine.
type settings struct{ watchedCache[settingsSnapshot] }

func (s *settings) now() settingsSnapshot {
	r := s.last(settingsKey)
	now := r.value
	now.revision, now.read = r.revision, r.began
	return now
}

// compile decodes and checks a settings.json, with the settings of the engine's channels, and
// compiles its policy.
func (e *base) compile(data []byte) (*schemas.Settings, *policy.Policy, error) {
	s, err := schemas.DecodeSettings(data, e.Channels...)
	if err != nil {
		return nil, nil, err
	}
	p, err := policy.New(s.Permissions, s.Policies...)
	if err != nil {
		return nil, nil, schemas.Errorf(schemas.CodeValidation, "%v", err)
	}
	return &s, p, nil
}

// loadSettings reads the settings from the store and compiles them, for the cache. If none are stored,
// empty settings are in force, by which no person may answer.
func (e *base) loadSettings(ctx context.Context, key string, last *reading[settingsSnapshot]) (settingsSnapshot, uint64, error) {
	data, revision, err := e.store.Settings.Document(ctx, key)
	if errors.Is(err, bus.ErrNotFound) {
		data, err = []byte("{}"), nil
	}
	if err != nil {
		return settingsSnapshot{}, 0, err
	}
	if last != nil && last.revision == revision {
		return last.value, revision, nil
	}
	s, p, err := e.compile(data)
	if err != nil {
		return settingsSnapshot{}, 0, fmt.Errorf("the stored settings (revision %d) are not valid: %w", revision, err)
	}
	p, err = p.Guard(e.Own...)
	if err != nil {
		return settingsSnapshot{}, 0, err
	}
	confirms, err := compileConfirms(s)
	if err != nil {
		return settingsSnapshot{}, 0, err
	}
	escalations, err := compileEscalations(s)
	return settingsSnapshot{settings: s, policy: p, confirms: confirms, escalations: escalations, needs: needsOf(s)}, revision, err
}

// readSettings reads the settings from the store. When it returns, they are in force on this engine.
func (e *base) readSettings(ctx context.Context) error {
	_, err := e.settings.renew(ctx, settingsKey)
	return err
}

// refresh reads the settings and the freezes from the store. After a failure the old settings and
// freezes stay in force. If they are older than staleAfter, no rule allows a call, and a person is
// asked.
func (e *base) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settingsEvery)
	defer cancel()
	if err := errors.Join(e.readSettings(ctx), e.readFrozen(ctx), e.readRestored(ctx)); err != nil && ctx.Err() == nil {
		e.Log.Warn("engine: settings were not read; the ones in force stay", "error", err)
	}
}

// SettingsRevision reads the revision of the settings from the store; 0 means that no settings are
// stored.
func (e *Engine) SettingsRevision(ctx context.Context) (uint64, error) {
	if err := e.readSettings(ctx); err != nil {
		return 0, err
	}
	return e.settings.now().revision, nil
}

// Settings reads the settings from the store and returns them.
func (e *Engine) Settings(ctx context.Context) (schemas.Settings, error) {
	if err := e.readSettings(ctx); err != nil {
		return schemas.Settings{}, err
	}
	return *e.settings.now().settings, nil
}

// ApplySettings stores a settings.json for all engines and returns its revision. It refuses invalid
// settings, and settings by which this machine could thaw a freeze that needs a second device. If the
// bytes are stored already, their revision stays. The log names actor as the author of the change.
func (e *Engine) ApplySettings(ctx context.Context, data []byte, actor string) (uint64, error) {
	return e.admin.applySettings(ctx, data, actor)
}

func (e *admin) applySettings(ctx context.Context, data []byte, actor string) (uint64, error) {
	s, _, err := e.compile(data)
	if err != nil {
		return 0, err
	}
	if _, err := compileConfirms(s); err != nil {
		return 0, err
	}
	if _, err := compileEscalations(s); err != nil {
		return 0, err
	}
	if err := e.checkThawKept(ctx, s); err != nil {
		return 0, err
	}
	if stored, _, err := e.store.Settings.Document(ctx, settingsKey); err != nil || !bytes.Equal(stored, data) {
		if err := e.checkEngines(ctx, s); err != nil {
			return 0, err
		}
	}
	revision, err := e.storeSettings(ctx, data)
	if err != nil {
		return 0, err
	}
	if err := e.readSettings(ctx); err != nil {
		return 0, err
	}
	// The ids of requests' entries begin with a session's id, which has no colon, so an id with a colon
	// differs from all of them.
	_, _, err = e.store.Log.Append(ctx, fmt.Sprintf("settings:%d", revision), schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: e.clock.now(), Kind: schemas.LogSettings, Actor: actor, SettingsRevision: revision,
	})
	return revision, err
}

func (e *admin) storeSettings(ctx context.Context, data []byte) (uint64, error) {
	for {
		stored, revision, err := e.store.Settings.Document(ctx, settingsKey)
		if err == nil && bytes.Equal(stored, data) {
			return revision, nil
		}
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return 0, err
		}
		revision, err = e.store.Settings.PutDocument(ctx, settingsKey, data, revision)
		if !errors.Is(err, bus.ErrMoved) {
			return revision, err
		}
	}
}

// changeSettings applies the settings in the owner's call, and replies with them.
func (e *admin) changeSettings(ctx context.Context, c *caller, change *schemas.SettingsChange) (schemas.SettingsState, error) {
	revision, err := e.applySettings(ctx, change.Settings, c.name)
	if err != nil {
		return schemas.SettingsState{}, err
	}
	s, err := schemas.DecodeSettings(change.Settings, e.Channels...)
	if err != nil {
		return schemas.SettingsState{}, err
	}
	return schemas.SettingsState{Type: schemas.TypeSettingsState, Revision: revision, Settings: s}, nil
}

// outgoing reports whether a connector only tells people about requests.
func (o *Options) outgoing(connector string) bool {
	return slices.ContainsFunc(o.Channels, func(c schemas.ChannelSettings) bool { return c.Name == connector && c.Outgoing })
}

// approver returns the approver who has a person's identity on a connector. Before it refuses an
// unknown person, it reads the settings again, because the cached settings may be old.
func (e *base) approver(ctx context.Context, connector string, from *schemas.From) (schemas.Approver, error) {
	if e.outgoing(connector) {
		return schemas.Approver{}, schemas.Errorf(schemas.CodeForbidden, "%s only tells people about requests: answer in the web inbox, the terminal or a chat", connector)
	}
	if err := e.checkAge(from.Login); err != nil {
		return schemas.Approver{}, err
	}
	a, ok := e.settings.now().settings.Approver(connector, *from)
	if !ok {
		if err := e.readSettings(ctx); err != nil {
			return a, err
		}
		a, ok = e.settings.now().settings.Approver(connector, *from)
	}
	if !ok {
		return a, from.NotApprover(connector)
	}
	return a, nil
}

// clockSlack is the time by which a connector's estimate of the broker's time may be ahead of the
// engine's.
const clockSlack = 5 * time.Second

// checkAge returns UNAUTHORIZED for a login that was last checked too long ago. Connectors must refuse
// old logins themselves, but the engine does not rely on that.
func (e *base) checkAge(l *schemas.Login) error {
	if l == nil {
		return nil
	}
	age := e.clock.now().Sub(l.CheckedAt)
	if age < -clockSlack {
		return schemas.Errorf(schemas.CodeUnauthorized, "the login at %s was checked %s later than now by nod's clock: try again", l.Issuer, schemas.FormatDuration(-age.Truncate(time.Second)))
	}
	if age > schemas.MaxLoginAge {
		return schemas.Errorf(schemas.CodeUnauthorized, "the login at %s was last checked %s ago, and counts for %s: try again", l.Issuer, schemas.FormatDuration(age.Truncate(time.Second)), schemas.FormatDuration(schemas.MaxLoginAge))
	}
	return nil
}

// logVouched logs the login of a person who acts, before the action counts. It logs nothing for a
// person who has not logged in at an issuer. A repeated action has the same id (act), and is logged
// once.
func (e *base) logVouched(ctx context.Context, who *schemas.Approver, connector string, from *schemas.From, session, pending, act string) error {
	if from.Login == nil {
		return nil
	}
	_, _, err := e.store.Log.Append(ctx, "vouched:"+act, schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: e.clock.now(), Kind: schemas.LogVouched, SessionID: session, PendingID: pending,
		Actor: who.Name + "@" + connector, Login: from.Login,
	})
	return err
}
