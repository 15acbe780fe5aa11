package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type leaveCmd struct {
	Session string       `required:"" placeholder:"S" help:"The session that goes on; see nod sessions."`
	For     span         `default:"30m" placeholder:"D" help:"How long, at most 8h (30m)."`
	MaxRisk schemas.Risk `name:"max-risk" enum:"low,medium" default:"low" help:"The highest risk of the calls to allow: low or medium."`
	Calls   int          `default:"100" placeholder:"N" help:"How many calls to allow, at most 200 (100)."`
	Yes     bool         `short:"y" help:"Do not ask."`
	JSON    bool         `name:"json" help:"Print the standing answer as JSON."`
}

// Run shows the limits of the leave, asks the user, and stores the leave.
func (c *leaveCmd) Run(e *env) error {
	if d := time.Duration(c.For); d < time.Second || d > schemas.MaxLeave {
		return fmt.Errorf("--for: a leave lasts from 1s to %s", schemas.FormatDuration(schemas.MaxLeave))
	}
	if c.Calls < 1 || c.Calls > schemas.MaxLeaveCalls {
		return fmt.Errorf("--calls takes a number from 1 to %d", schemas.MaxLeaveCalls)
	}
	r := schemas.LeaveRequest{SessionID: c.Session, ForSeconds: int(time.Duration(c.For) / time.Second), MaxRisk: c.MaxRisk, MaxCalls: c.Calls}
	if !c.Yes {
		if !e.interactive() {
			return errors.New("nothing was changed: there is no terminal to ask on; --yes does not ask")
		}
		fmt.Fprintln(e.stdout, people.LeaveTerms(&r))
		if !e.agree("Leave?") {
			return errUnchanged
		}
	}
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	r.From = schemas.From{UserID: d.user}
	g, err := d.Leave(ctx, r)
	switch {
	case errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}):
		return fmt.Errorf("there is no session %s: see nod sessions", people.Line(c.Session))
	case err != nil:
		return e.refused(err, time.Now(), false)
	case c.JSON:
		return e.printJSON(g)
	}
	fmt.Fprintf(e.stdout, "Session %s goes on until %s. Requests that wait already stay pending. nod back ends it and lists its calls.\n", people.Line(c.Session), g.ExpiresAt.Local().Format("15:04"))
	return nil
}

type backCmd struct {
	Session string `placeholder:"S" help:"Only the leave of this session."`
	JSON    bool   `name:"json" help:"Print a JSON array."`
}

// Run ends this person's leaves and prints their calls. It also prints the calls of leaves that ended
// by themselves in the last 24 hours.
func (c *backCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	state, err := d.Settings(ctx)
	if err != nil {
		return err
	}
	who, ok := state.Settings.Approver(schemas.ConnectorTerminal, schemas.From{UserID: d.user})
	if !ok {
		return fmt.Errorf("%s is no approver at the terminal: see nod approvers", d.user)
	}
	all, err := d.Grants(ctx, c.Session)
	if err != nil {
		return err
	}
	now := time.Now()
	all = slices.DeleteFunc(all, func(g schemas.StandingAnswer) bool {
		return g.Leave == nil || g.By.Name != who.Name || !g.Live(now) && now.Sub(g.CreatedAt) > schemas.MaxLeave+24*time.Hour
	})
	slices.SortFunc(all, func(a, b schemas.StandingAnswer) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for i := range all {
		if !all[i].Live(now) {
			continue
		}
		if err := d.Revoke(ctx, &all[i], d.user); err != nil {
			return err
		}
	}
	ended, err := d.Grants(ctx, c.Session) // the leaves are read again, to get the calls that they allowed until their end
	if err != nil {
		return err
	}
	for i := range all {
		if at := slices.IndexFunc(ended, func(g schemas.StandingAnswer) bool { return g.GrantID == all[i].GrantID }); at >= 0 {
			all[i] = ended[at]
		}
	}
	if c.JSON {
		return e.printJSON(append([]schemas.StandingAnswer{}, all...))
	}
	if len(all) == 0 {
		fmt.Fprintln(e.stderr, "you left no session")
		return nil
	}
	for i := range all {
		fmt.Fprintln(e.stdout, strings.Join(people.LeaveSummary(&all[i], now), "\n"))
	}
	return nil
}
