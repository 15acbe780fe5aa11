package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type grantsCmd struct {
	Session string `placeholder:"S" help:"Only those of this session."`
	All     bool   `help:"Ended ones too."`
	JSON    bool   `name:"json" help:"Print a JSON array."`
}

// Run lists what has been allowed beyond one call.
func (c *grantsCmd) Run(e *env) error {
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	grants, err := owner.Grants(ctx, c.Session)
	if err != nil {
		return err
	}
	now := time.Now()
	if !c.All {
		grants = slices.DeleteFunc(grants, func(g schemas.StandingAnswer) bool { return !g.Live(now) })
	}
	slices.SortFunc(grants, func(a, b schemas.StandingAnswer) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if c.JSON {
		return e.printJSON(append([]schemas.StandingAnswer{}, grants...))
	}
	if len(grants) == 0 {
		fmt.Fprintln(e.stderr, "nothing is allowed beyond one call")
		return nil
	}
	for i := range grants {
		fmt.Fprintln(e.stdout, grantLine(&grants[i], now))
	}
	return nil
}

// grantLine is a grant in a line: which, what, where, from whom, until when.
func grantLine(g *schemas.StandingAnswer, now time.Time) string {
	where := "agent " + g.Agent
	if g.Scope != schemas.ScopeAgent {
		where = "session " + g.SessionID
	}
	ends := "until revoked"
	switch {
	case !g.RevokedAt.IsZero():
		ends = "revoked"
	case g.Limited && g.Uses == 0:
		ends = "used"
	case !g.ExpiresAt.IsZero() && g.Live(now):
		ends = "for another " + schemas.Roughly(g.ExpiresAt.Sub(now))
	case !g.Live(now):
		ends = "ended"
	}
	return strings.Join([]string{g.GrantID[:min(8, len(g.GrantID))], people.Line(g.Reach()), where, "by " + people.Line(g.By.Name), ends}, "  ")
}

type revokeCmd struct {
	ID string `arg:"" help:"Its id, or the beginning of it; see nod grants."`
}

// Run ends a grant.
func (c *revokeCmd) Run(e *env) error {
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	grants, err := owner.Grants(ctx, "")
	if err != nil {
		return err
	}
	grants = slices.DeleteFunc(grants, func(g schemas.StandingAnswer) bool { return !strings.HasPrefix(g.GrantID, c.ID) })
	switch {
	case len(c.ID) < schemas.MinPrefix:
		return fmt.Errorf("%q is too short for the beginning of a grant's id: give %d characters or more; see nod grants", c.ID, schemas.MinPrefix)
	case len(grants) == 0:
		return fmt.Errorf("no grant %s is known: see nod grants", c.ID)
	case len(grants) > 1:
		return fmt.Errorf("%s is the beginning of %d grants: give more of the id", c.ID, len(grants))
	}
	g := grants[0]
	if err := owner.Revoke(ctx, &g); err != nil { // an ended one too: what was shared of it may not have ended yet
		return err
	}
	if !g.Live(time.Now()) {
		fmt.Fprintln(e.stdout, grantLine(&g, time.Now()))
		return nil
	}
	fmt.Fprintf(e.stdout, "revoked: %s\n", people.Line(g.Reach()))
	return nil
}
