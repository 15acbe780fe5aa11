package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

type allowCmd struct {
	ID      string `arg:"" optional:"" help:"The request's id, or the beginning of it; without an id, the one that waits, which is shown first."`
	Session string `placeholder:"S" help:"The request's session, if the id alone is not unique."`
	Message string `short:"m" placeholder:"TEXT" help:"A message for the agent."`
	Input   string `placeholder:"JSON" help:"Allow with this input instead; @FILE reads a file, - standard input."`

	Always bool   `help:"Also allow later calls, in every session of this agent; nod revoke ends it."`
	For    span   `placeholder:"D" help:"Also allow later calls, in this session, for this time, such as 30m or 1d."`
	Rule   string `placeholder:"RULE" help:"The later calls to allow: a rule that nod show lists, by its number (default 1, the narrowest) or its exact text."`
	Scope  string `enum:",session,agent" default:"" placeholder:"SCOPE" help:"Allow later calls in this session, or in all sessions of the agent: session or agent."`
	Code   string `name:"code-word" placeholder:"WORD" help:"The code word, if the settings require one."`
	Yes    bool   `short:"y" help:"Do not ask to confirm the rule: --rule must have its exact text."`
	JSON   bool   `name:"json" help:"Print the decision as JSON."`
}

// Run allows a request, once or with a grant for later calls.
func (c *allowCmd) Run(e *env) error {
	a, err := c.draft()
	if err != nil {
		return err
	}
	if c.Input != "" {
		input, err := e.readInput(c.Input)
		if err != nil {
			return fmt.Errorf("read --input: %w", err)
		}
		if !json.Valid(input) {
			return errors.New("--input must be JSON, such as '{\"command\":\"make\"}'")
		}
		a.UpdatedInput = input
	}
	return e.answer(c.Session, c.ID, c.choose, a, answerStyle{json: c.JSON, sure: c.Yes, only: isCall, confirm: "Allow it?"})
}

// draft returns an answer with the values of the flags, but without a request, an option and a rule.
func (c *allowCmd) draft() (schemas.Answer, error) {
	a := schemas.Answer{Message: c.Message, Scope: schemas.Scope(c.Scope), CodeWord: c.Code, ForSeconds: int(time.Duration(c.For) / time.Second)}
	switch {
	case time.Duration(c.For)%time.Second != 0:
		return a, errors.New("--for: give whole seconds, such as 30m")
	case c.Always && c.For > 0:
		return a, errors.New("--always lasts until it is revoked, and --for ends: give one of them; --for with --scope agent ends and holds in every session of the agent")
	case c.Always && a.Scope == schemas.ScopeSession:
		return a, errors.New("--always holds in every session of the agent: leave it out, and --scope session lasts in this one until it is revoked")
	case c.Yes && !strings.ContainsFunc(c.Rule, notDigit) && (c.Always || c.For > 0 || a.Scope != ""):
		return a, errors.New("--yes needs --rule with the exact text of the rule, as nod show lists it: read a rule before you allow it")
	case a.Scope != "":
	case c.For > 0:
		a.Scope = schemas.ScopeSession
	case c.Always:
		a.Scope = schemas.ScopeAgent
	case c.Rule != "": // --rule needs a lasting allow, and is refused without one because it would have no effect
		return a, errors.New("--rule chooses the rule of a lasting grant: add --always or --for")
	}
	return a, nil
}

func notDigit(r rune) bool { return r < '0' || r > '9' }

// choose sets the answer's option to "allow once". For a lasting allow it also sets the index of the
// rule to remember, and how long the rule lasts.
func (c *allowCmd) choose(p *schemas.Prompt, a *schemas.Answer) (err error) {
	if a.Scope != "" {
		if a.Reach, err = reachOf(p, c.Rule); err != nil {
			return err
		}
		if a.ForSeconds, err = p.Remember[a.Reach].Lasts(a.Scope, a.ForSeconds); err != nil {
			return fmt.Errorf("nothing was answered: %w", err)
		}
	}
	return ofKind(schemas.AllowOnce)(p, a)
}

// reachOf returns the index of a lasting rule in p.Remember. The user names the rule by its number,
// counted from 1, or by its exact text. If the user names no rule, reachOf returns the index of the
// first rule, which covers the fewest calls.
func reachOf(p *schemas.Prompt, named string) (int, error) {
	if len(p.Remember) == 0 {
		return 0, fmt.Errorf("nod cannot tell which other calls a rule for %s would allow: allow it once", p.PendingID)
	}
	if named == "" {
		return 0, nil
	}
	if i := slices.IndexFunc(p.Remember, func(r schemas.Reach) bool { return r.String() == named }); i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(named)
	if err != nil || n < 1 || n > len(p.Remember) {
		return 0, fmt.Errorf("--rule: %q is neither the number nor the text of one of the %d rules that nod show %s lists", named, len(p.Remember), p.PendingID)
	}
	return n - 1, nil
}
