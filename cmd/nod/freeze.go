package main

import (
	"fmt"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// brakeFlags say what is frozen or thawed.
type brakeFlags struct {
	Agent   string `placeholder:"A" xor:"what" help:"Only this agent, by the name of its key."`
	Session string `placeholder:"S" xor:"what" help:"Only this session."`
	JSON    bool   `name:"json" help:"Print what is frozen as JSON."`
}

type freezeCmd struct {
	brakeFlags
	Message string `short:"m" placeholder:"TEXT" help:"Tell agents and people why."`
}

// Run freezes, and returns when every engine obeys.
func (c *freezeCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	frozen, err := d.Freeze(ctx, schemas.Brake{Agent: c.Agent, SessionID: c.Session, Reason: c.Message, From: schemas.From{UserID: d.user}})
	if err != nil {
		return e.refused(err, time.Now(), false)
	}
	if err := e.obeyed(frozen.Revision); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(frozen)
	}
	fmt.Fprintf(e.stdout, "Frozen: whatever %s asks is denied until nod thaw; open requests denied: %d. Commands that run already are not stopped.\n", c.whose(), frozen.Denied)
	return nil
}

func (c *brakeFlags) whose() string {
	switch {
	case c.Agent != "":
		return "agent " + c.Agent
	case c.Session != "":
		return "session " + c.Session
	}
	return "any agent"
}

// obeyed waits until every live engine has heard of a freeze.
func (e *env) obeyed(revision uint64) error {
	ctx, owner, done, err := e.owner()
	if err != nil {
		return fmt.Errorf("it is frozen; whether every engine obeys already is not known: %w", err)
	}
	defer done()
	laggards, err := owner.FollowFrozen(ctx, revision)
	if err == nil && len(laggards) > 0 {
		err = fmt.Errorf("these engines have not heard of it yet: %v; see their logs", laggards)
	}
	if err != nil {
		return fmt.Errorf("it is frozen, but: %w", err)
	}
	return nil
}

type thawCmd struct{ brakeFlags }

// Run thaws what was frozen.
func (c *thawCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	frozen, err := d.Thaw(ctx, schemas.Brake{Agent: c.Agent, SessionID: c.Session, From: schemas.From{UserID: d.user}})
	if err != nil {
		return e.refused(err, time.Now(), false)
	}
	if c.JSON {
		return e.printJSON(frozen)
	}
	fmt.Fprintf(e.stdout, "Thawed: %s may ask again.\n", c.whose())
	for i := range frozen.Freezes {
		fmt.Fprintf(e.stdout, "Still in force: %s\n", people.Frozen(&frozen.Freezes[i]))
	}
	return nil
}

// warnFrozen says what is frozen to somebody who looks at what is open.
func (e *env) warnFrozen(freezes []schemas.Freeze) {
	for i := range freezes {
		fmt.Fprintf(e.stderr, "nod: %s; nod thaw ends it\n", people.Frozen(&freezes[i]))
	}
}
