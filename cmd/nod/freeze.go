package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// freezeTarget contains the flags that name an agent or a session. Without these flags, freeze and
// thaw apply to all agents.
type freezeTarget struct {
	Agent   string `placeholder:"A" xor:"what" help:"Only this agent, by the name of its key."`
	Session string `placeholder:"S" xor:"what" help:"Only this session."`
	JSON    bool   `name:"json" help:"Print the result as JSON: the freezes then in force."`
}

type freezeCmd struct {
	freezeTarget
	Message string `short:"m" placeholder:"TEXT" help:"The reason, for agents and people."`
}

// Run freezes the target. If an engine does not confirm the freeze, Run returns an error that names
// that engine. The freeze is stored nevertheless, and the other engines follow it.
func (c *freezeCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	b := c.request(d.user)
	b.Reason = c.Message
	frozen, err := d.Freeze(ctx, b)
	if err != nil {
		return e.refused(err, time.Now(), false)
	}
	if !c.known(ctx, d) {
		fmt.Fprintf(e.stderr, "nod: warning: %s has asked nothing in the last 24 hours: is the name right? The freeze is in force all the same\n", people.FreezeTarget(&b))
	}
	if c.JSON {
		err = e.printJSON(frozen)
	} else {
		fmt.Fprintf(e.stdout, "Frozen: every request of %s is denied until %s. %s. Commands that already run are not stopped.\n", people.FreezeTarget(&b), thawLine(&b), people.Denials(&frozen))
	}
	if err == nil && len(frozen.Laggards) > 0 {
		err = fmt.Errorf("the freeze is stored, but some engines have not confirmed it and may still allow by a rule: see the logs of %s", people.Line(strings.Join(frozen.Laggards, ", ")))
	}
	return err
}

func (c *freezeTarget) request(user string) schemas.FreezeRequest {
	return schemas.FreezeRequest{Agent: c.Agent, SessionID: c.Session, From: schemas.From{UserID: user}}
}

// known reports whether the target exists. A session exists if nod knows it, and an agent exists if nod
// has stored its requests. If nod does not reply, known returns true.
func (c *freezeTarget) known(ctx context.Context, d *desk) bool {
	switch {
	case c.Session != "":
		_, err := d.Session(ctx, c.Session)
		return !errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound})
	case c.Agent == "":
		return true
	}
	found := false
	look := func(page []schemas.Prompt) error {
		found = found || slices.ContainsFunc(page, func(p schemas.Prompt) bool { return p.Agent == c.Agent })
		return nil
	}
	err := d.EachPending(ctx, schemas.Query{}, look)
	if err == nil && !found {
		err = d.EachDecided(ctx, "", look)
	}
	return err != nil || found
}

type thawCmd struct {
	freezeTarget
	Code string `name:"code-word" placeholder:"WORD" help:"The code word, if the settings require one."`
}

// Run ends a freeze. If no code word is set, the user has to type a displayed word at a terminal, so
// that no script can thaw by mistake.
func (c *thawCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	b := c.request(d.user)
	b.CodeWord = c.Code
	none := fmt.Errorf("nothing was thawed: no freeze of %s is in force", people.FreezeTarget(&b))
	state, err := d.Settings(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(state.Freezes, func(f schemas.Freeze) bool { return f.Agent == c.Agent && f.SessionID == c.Session }) {
		return none
	}
	if c.Code == "" {
		if err := e.confirmThaw(); err != nil {
			return err
		}
	}
	ctx, cancel := e.soon() // the user may have taken long to type, so the thaw gets a new time limit
	defer cancel()
	frozen, err := d.Thaw(ctx, b)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) {
		return none
	}
	if err != nil {
		return e.refused(err, time.Now(), false)
	}
	if c.JSON {
		return e.printJSON(frozen)
	}
	fmt.Fprintf(e.stdout, "Thawed: %s may ask again.\n", people.FreezeTarget(&b))
	for i := range frozen.Freezes {
		fmt.Fprintf(e.stdout, "Still in force: %s\n", people.DescribeFreeze(&frozen.Freezes[i]))
	}
	return nil
}

// confirmThaw shows a random word and returns an error unless the user types it.
func (e *env) confirmThaw() error {
	if !e.interactive() {
		return errors.New("a thaw takes a person at a terminal, the code word (--code-word), or /thaw from a phone: nothing is thawed")
	}
	word := rand.Text()[:6]
	if typed := e.typed("To let agents ask again, type " + word + ": "); !strings.EqualFold(typed, word) {
		return errors.New("that was not the word: nothing is thawed")
	}
	return nil
}

// warnFrozen prints each freeze in force to standard error, with the command that ends the freeze.
func (e *env) warnFrozen(freezes []schemas.Freeze) {
	for i := range freezes {
		thaw := thawLine(&schemas.FreezeRequest{Agent: freezes[i].Agent, SessionID: freezes[i].SessionID})
		fmt.Fprintf(e.stderr, "nod: %s; %s ends it\n", people.DescribeFreeze(&freezes[i]), thaw)
	}
}

// thawLine returns the command that ends the freeze of a target, such as "nod thaw --agent ada".
func thawLine(b *schemas.FreezeRequest) string {
	if target := people.TargetArgs(b); target != "" {
		return "nod thaw --" + people.Line(target)
	}
	return "nod thaw"
}
