package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
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

// Run freezes, and fails where not every engine has said that it obeys.
func (c *freezeCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	b := c.brake(d.user)
	b.Reason = c.Message
	frozen, err := d.Freeze(ctx, b)
	if err != nil {
		return e.refused(err, time.Now(), false)
	}
	if c.JSON {
		err = e.printJSON(frozen)
	} else {
		fmt.Fprintf(e.stdout, "Frozen: whatever %s asks is denied until nod thaw. %s. Commands that run already are not stopped.\n", people.FreezeTarget(&b), people.Denials(&frozen))
	}
	if late := people.Laggards(&frozen); err == nil && late != "" {
		err = fmt.Errorf("it is frozen, but not everywhere: %s", late)
	}
	return err
}

func (c *brakeFlags) brake(user string) schemas.FreezeRequest {
	return schemas.FreezeRequest{Agent: c.Agent, SessionID: c.Session, From: schemas.From{UserID: user}}
}

type thawCmd struct {
	brakeFlags
	Code string `name:"code-word" placeholder:"WORD" help:"The code word, where the settings want one."`
}

// Run thaws what was frozen. Where no code word is said, a person at a terminal has
// to type what they read: a script does not thaw by mistake.
func (c *thawCmd) Run(e *env) error {
	if c.Code == "" {
		if err := e.meant(); err != nil {
			return err
		}
	}
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	b := c.brake(d.user)
	b.CodeWord = c.Code
	frozen, err := d.Thaw(ctx, b)
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

// meant has a person type a word that is shown.
func (e *env) meant() error {
	if !e.interactive() {
		return errors.New("a thaw takes a person at a terminal, the code word (--code-word), or /thaw from a phone: nothing is thawed")
	}
	word := rand.Text()[:6]
	if said := e.typed("To let agents ask again, type " + word + ": "); !strings.EqualFold(said, word) {
		return errors.New("that was not the word: nothing is thawed")
	}
	return nil
}

// warnFrozen says what is frozen to somebody who looks at what is open.
func (e *env) warnFrozen(freezes []schemas.Freeze) {
	for i := range freezes {
		fmt.Fprintf(e.stderr, "nod: %s; nod thaw ends it\n", people.DescribeFreeze(&freezes[i]))
	}
}
