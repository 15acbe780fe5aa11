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
	Session string `placeholder:"S" help:"Only standing answers of this session."`
	All     bool   `help:"Also list standing answers that have ended."`
	JSON    bool   `name:"json" help:"Print a JSON array."`
}

// Run lists the standing answers, newest first.
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
	people.SortNewestFirst(grants)
	if c.JSON {
		return e.printJSON(append([]schemas.StandingAnswer{}, grants...))
	}
	if len(grants) == 0 {
		fmt.Fprintln(e.stderr, "nothing is allowed or denied beyond one call")
		return nil
	}
	for i := range grants {
		fmt.Fprintln(e.stdout, people.DescribeStanding(&grants[i], now))
	}
	return nil
}

type revokeCmd struct {
	ID string `arg:"" help:"The standing answer's id, or the beginning of it; see nod grants."`
}

// Run ends a standing answer. nod then asks again about the calls that the answer covered.
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
		return fmt.Errorf("%q is too short for the beginning of a standing answer's id: give %d characters or more; see nod grants", c.ID, schemas.MinPrefix)
	case len(grants) == 0:
		return fmt.Errorf("there is no standing answer %s: see nod grants", c.ID)
	case len(grants) > 1:
		return fmt.Errorf("%s is the beginning of %d standing answers: give more of the id", c.ID, len(grants))
	}
	g, now := grants[0], time.Now()
	before := people.DescribeStanding(&g, now)
	if err := owner.Revoke(ctx, &g); err != nil { // an expired grant is revoked too, because grants that were shared from it may still be in force
		return err
	}
	switch before.Undo {
	case "":
		fmt.Fprintln(e.stdout, before)
	case "forget":
		fmt.Fprintf(e.stdout, "forgotten: the denial of %s\n", before.Covers)
	default:
		fmt.Fprintf(e.stdout, "revoked: %s\n", before.Covers)
	}
	return nil
}
