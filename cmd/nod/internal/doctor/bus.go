package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// throughBus makes the checks that need a running nod: rights, approvers, channels,
// the clock and the boundary.
func throughBus(ctx context.Context, o Options) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 3*checkTimeout)
	defer cancel()
	if _, joined, err := o.Place.Joined(); joined || err != nil {
		return throughInvitation(ctx, o)
	}
	if o.Place.URL == "" {
		if _, err := bus.ReadRun(o.DataDir); err != nil {
			return boundary(o, nil, false) // nod does not run; serviceFindings reports that
		}
	}
	found, settings, open := rights(ctx, o)
	if settings != nil {
		found = append(found, approvers(settings)...)
		found = append(found, unreached(settings)...)
		if o.Place.URL == "" { // only the machine that runs nod stores the secrets of the channels
			found = append(found, channels(ctx, o, settings)...)
		}
		found = append(found, logins(ctx, o, settings)...)
	}
	found = append(found, tokenService(ctx, o)...)
	return append(found, boundary(o, settings, open)...)
}

// throughInvitation checks whether this machine's key is accepted by the nod that invited this machine.
func throughInvitation(ctx context.Context, o Options) []Finding {
	const check = "rights"
	name, err := o.Place.Agent()
	if err != nil {
		return nil // serviceFindings reports the damaged invitation
	}
	conn, err := bus.Join(ctx, o.Place, roles.AgentID(name), o.Log)
	if err != nil {
		return []Finding{failed(check, fmt.Errorf("connect as the agent %s: %w", name, err))}
	}
	conn.Close()
	return []Finding{ok(check, "this machine may ask, as the agent "+name+"; answer and manage on the machine of nod")}
}

// rights connects in each role that this user's commands need, and returns findings about these roles. The
// result settings contains the settings in force; it is nil if the owner's key is missing or cannot read
// them. The result open is true if the server requires no credentials.
func rights(ctx context.Context, o Options) (found []Finding, settings *schemas.Settings, open bool) {
	const check = "rights"
	for _, id := range o.roles() {
		conn, err := bus.Join(ctx, o.Place, id, o.Log)
		if err != nil {
			found = append(found, failed(check, fmt.Errorf("connect as %s: %w", id, err)))
			continue
		}
		open = open || conn.Open()
		if id.Role == roles.Owner {
			state, err := connector.NewOwner(conn, schemas.ConnectorTerminal).Settings(ctx)
			if err != nil {
				found = append(found, wrong(check, "the settings in force cannot be read: "+oneLine(err), "see that an engine runs and that this key may manage it"))
			} else {
				settings = &state.Settings
			}
		}
		conn.Close()
	}
	switch {
	case len(found) > 0:
	case o.Place.URL == "" && o.Place.TokenFile == "":
		found = append(found, ok(check, "this user may ask, answer and manage"))
	default:
		credential := "key"
		if o.Place.TokenFile != "" {
			credential = "token"
		}
		found = append(found, ok(check, "the server accepts the "+credential+" of "+o.roles()[0].String()))
		if settings == nil {
			found = append(found, note("approvers", "the other checks need the owner's key", "run nod doctor on the machine of nod"))
		}
	}
	return found, settings, open
}

// roles returns the roles in which this user's commands connect. For a nod on this machine these are
// three roles. Otherwise it is only the role in the key file's name, by default the owner.
func (o *Options) roles() []roles.ID {
	if name, err := o.Place.Agent(); err == nil && o.Place.TokenFile != "" {
		return []roles.ID{roles.AgentID(name)}
	}
	if o.Place.URL == "" {
		return []roles.ID{roles.AgentID("local"), roles.ConnectorID(schemas.ConnectorTerminal), {Role: roles.Owner}}
	}
	name := strings.TrimSuffix(filepath.Base(o.Place.Creds), filepath.Ext(o.Place.Creds))
	if id, err := roles.ParseID(name); err == nil {
		return []roles.ID{id}
	}
	return []roles.ID{{Role: roles.Owner}}
}

// approvers returns a fault if no approver may answer. Otherwise it returns a finding for each
// approver. The finding is a note if the approver has no identity on a channel that takes answers.
func approvers(s *schemas.Settings) []Finding {
	const check = "approvers"
	if len(s.Identities()) == 0 && !s.ByLogin() {
		return []Finding{wrong(check, "approvers.people is empty, so every question is refused at once",
			`add an approver to settings.json, such as {"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}, then nod settings apply`)}
	}
	var found []Finding
	for _, p := range s.Approvers.People {
		var at []string
		for _, id := range p.Identities {
			if !slices.ContainsFunc(embed.Channels(), func(c people.Channel) bool { return c.Name() == id.Connector && c.Settings.Outgoing }) {
				at = append(at, id.Connector)
			}
		}
		if len(at) == 0 {
			found = append(found, note(check, p.Name+" has no identity on a channel that takes answers, and so cannot answer", "add one under approvers.people, then nod settings apply"))
			continue
		}
		found = append(found, ok(check, fmt.Sprintf("%s may answer on %s", p.Name, strings.Join(at, ", "))))
	}
	return found
}

// unreached returns a note for each group, stand-in and later step of an escalation, if none of its people
// can be prompted on a phone or chat. Such people find a question only if they look at an inbox.
func unreached(s *schemas.Settings) (found []Finding) {
	prompted := func(name string) bool {
		return slices.ContainsFunc(s.Named([]string{name}), func(a schemas.Approver) bool {
			return slices.ContainsFunc(a.Identities, func(id schemas.Identity) bool { return !schemas.IsViewer(id.Connector) })
		})
	}
	const do = "add an identity on a phone or chat under approvers.people, then nod settings apply"
	warn := func(what, name string) {
		if !prompted(name) {
			found = append(found, note("approvers", what+" reaches no phone or chat: "+name+" sees the question only in an inbox", do))
		}
	}
	for _, g := range s.Groups() {
		if len(g.OIDCGroups) > 0 {
			continue // people who join the group by their login can be reached only on the web
		}
		warn("the group "+g.Name, g.Name)
	}
	for i, esc := range s.Escalations() {
		for j, step := range esc.Steps {
			if j > 0 && !slices.ContainsFunc(step.To, prompted) {
				warn(fmt.Sprintf("step %d of approvers.escalation[%d]", j+1, i), strings.Join(step.To, ", "))
			}
		}
	}
	for _, a := range s.People() {
		switch {
		case a.StandIn != "":
			warn("the stand-in of "+a.Name, a.StandIn)
		case len(a.Quiet) > 0:
			found = append(found, note("approvers", a.Name+" has quiet hours and no stand-in: questions wait until these end", "set stand_in of this person, unless others are asked as well"))
		}
	}
	return found
}

// channels checks the connectors that reach people away from this machine. It also compares the
// clocks.
func channels(ctx context.Context, o Options, s *schemas.Settings) []Finding {
	var found []Finding
	reached := embed.Reach(ctx, s.Connectors, o.Log)
	store, done, err := openStore(ctx, o)
	if err != nil {
		found = append(found, note("clock", "the stores cannot be read from here: "+oneLine(err), ""))
	} else {
		defer done()
		found = append(found, clock(ctx, store))
	}
	for _, name := range embed.ChannelNames() {
		err, named := reached[name]
		if !named {
			continue
		}
		found = append(found, channel(ctx, name, err, s, store))
	}
	if len(reached) == 0 {
		found = append(found, note("channels", "no approver is reached away from this machine", "docs/phone.md: answer on a phone, with no public address"))
	}
	return found
}

func channel(ctx context.Context, name string, err error, s *schemas.Settings, store *bus.Store) Finding {
	check := "channel " + name
	if err != nil {
		return wrong(check, "it cannot be reached from here: "+oneLine(err), "a service sees no variables of your shell: name secrets in files")
	}
	if store != nil {
		workers, err := store.Presence.LiveKeys(ctx, "worker."+name+".*")
		if err != nil {
			return failed(check, err)
		}
		if len(workers) == 0 {
			return wrong(check, "it can be reached, but nod runs no worker for it", "start nod again: it starts the connectors that the settings name; or nod connector "+name)
		}
	}
	if !slices.ContainsFunc(s.Identities(), func(id schemas.Identity) bool { return id.Connector == name }) {
		return wrong(check, "it works, but no approver is on it", "add an identity with it to approvers.people, then nod settings apply")
	}
	return ok(check, "it works")
}

// openStore opens the stores of the nod that runs on this data directory. It connects with the key of
// the role owner-store, and creates no missing store.
func openStore(ctx context.Context, o Options) (*bus.Store, func(), error) {
	conn, err := bus.Join(ctx, o.Place, roles.ID{Role: roles.OwnerStore}, o.Log)
	if err != nil {
		return nil, nil, err
	}
	store, err := bus.OpenExistingStore(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return store, conn.Close, nil
}

// A clock difference above clockNote is a note. Above clockWrong it is a fault,
// because short deadlines then fail.
const (
	clockNote  = 2 * time.Second
	clockWrong = 30 * time.Second
)

// clock compares this machine's clock with the broker's clock, which sets deadlines.
func clock(ctx context.Context, store *bus.Store) Finding {
	const check, do = "clock", "have the machines' clocks set by the network (NTP)"
	ahead, err := store.BrokerTime(ctx)
	if err != nil {
		return failed(check, err)
	}
	off := ahead.Abs().Round(time.Millisecond)
	what := fmt.Sprintf("this clock and the server's are %s apart", off)
	switch {
	case off > clockWrong:
		return wrong(check, what, do)
	case off > clockNote:
		return note(check, what, do)
	}
	return ok(check, what)
}
