package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// desk is the terminal connector's, for this user.
type desk struct {
	*connector.Desk
	user string
}

// desk connects the terminal for one command: done must be called, and ends ctx.
func (e *env) desk() (ctx context.Context, d *desk, done func(), err error) {
	u, err := user.Current()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("find out who answers: %w", err)
	}
	ctx, conn, done, err := e.join(roles.ConnectorID(schemas.ConnectorTerminal))
	if err != nil {
		return nil, nil, nil, err
	}
	return ctx, &desk{connector.NewDesk(conn, schemas.ConnectorTerminal), u.Username}, done, nil
}

// listed is a request as listings print it: the contract's names, flat.
type listed struct {
	schemas.Request
	Agent    string            `json:"agent"`
	Digest   string            `json:"digest"`
	Risk     schemas.Risk      `json:"risk"`
	Reasons  []string          `json:"reasons,omitempty"`
	Tier     schemas.Tier      `json:"tier"`
	Deadline time.Time         `json:"deadline"`
	Revision uint64            `json:"revision"`
	Decision *schemas.Decision `json:"decision,omitempty"`
	// Aftermath tells of calls that ended otherwise than decided.
	Aftermath []schemas.Aftermath `json:"aftermath,omitempty"`
}

func list(p schemas.Prompt) listed {
	return listed{p.Request, p.Agent, p.Digest, p.Risk, p.Reasons, p.Tier, p.Deadline, p.Revision, p.Decision, p.Aftermath}
}

type pendingCmd struct {
	Session string `placeholder:"S" help:"Only of this session."`
	JSON    bool   `name:"json" help:"Print a JSON array."`
}

// Run lists what is undecided.
func (c *pendingCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	prompts, err := d.Pending(ctx, schemas.Query{SessionID: c.Session})
	if err != nil {
		return err
	}
	if state, err := d.Settings(ctx); err == nil { // a list without it is still a list
		e.warnFrozen(state.Freezes)
	}
	if c.JSON {
		all := make([]listed, len(prompts))
		for i, p := range prompts {
			all[i] = list(p)
		}
		return e.printJSON(all)
	}
	if len(prompts) == 0 {
		fmt.Fprintln(e.stderr, "nothing waits for an answer")
		return nil
	}
	fmt.Fprint(e.stdout, people.Table(prompts, time.Now(), e.width()))
	return nil
}

type showCmd struct {
	ID      string `arg:"" help:"Its id, or the beginning of it."`
	Session string `placeholder:"S" help:"Its session, where the id alone is not unique."`
	JSON    bool   `name:"json" help:"Print one JSON object."`
}

// Run shows one request whole.
func (c *showCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	p, page, err := d.Show(ctx, c.Session, c.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(list(p))
	}
	fmt.Fprint(e.stdout, people.Text(&p, page.Now, e.width()))
	return nil
}

type allowCmd struct {
	ID      string `arg:"" help:"Its id, or the beginning of it."`
	Session string `placeholder:"S" help:"Its session, where the id alone is not unique."`
	Message string `short:"m" placeholder:"TEXT" help:"Tell the agent."`
	Input   string `placeholder:"JSON" help:"Allow with this input instead; @FILE reads a file, - standard input."`

	Always bool          `help:"From now on as well, whatever session of this agent asks; nod revoke ends it."`
	For    time.Duration `placeholder:"D" help:"From now on as well, in this session, for so long, such as 30m."`
	Rule   int           `default:"1" placeholder:"N" help:"Which of the rules that nod show lists (1, the narrowest)."`
	Scope  string        `enum:",session,agent" default:"" placeholder:"SCOPE" help:"Where it holds: session or agent."`
	Code   string        `name:"code-word" placeholder:"WORD" help:"The code word, where the settings want one."`
	Yes    bool          `short:"y" help:"Do not ask whether the rule is the one that is meant."`
	JSON   bool          `name:"json" help:"Print the decision as JSON."`
}

// Run allows a request once, or from now on.
func (c *allowCmd) Run(e *env) error {
	a, err := c.wanted()
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
	return e.answer(c.Session, c.ID, ofKind(schemas.AllowOnce), a, answerStyle{json: c.JSON, sure: c.Yes})
}

// wanted is the answer that the flags ask for.
func (c *allowCmd) wanted() (schemas.Answer, error) {
	a := schemas.Answer{Message: c.Message, Scope: schemas.Scope(c.Scope), Reach: c.Rule - 1, CodeWord: c.Code, ForSeconds: int(c.For / time.Second)}
	switch {
	case c.For < 0 || c.For%time.Second != 0:
		return a, errors.New("--for: give whole seconds, such as 30m")
	case c.Rule < 1:
		return a, errors.New("--rule: they are counted from 1; see nod show")
	case a.Scope != "":
	case c.For > 0:
		a.Scope = schemas.ScopeSession
	case c.Always:
		a.Scope = schemas.ScopeAgent
	case c.Rule > 1: // it would be an allow once, unsaid
		return a, errors.New("--rule chooses among the rules that --always and --for leave behind: add one of them")
	}
	return a, nil
}

type answerCmd struct {
	ID      string   `arg:"" help:"The question's id, or the beginning of it."`
	Answer  []string `arg:"" help:"The number of an answer (see nod show), or your own words."`
	Session string   `placeholder:"S" help:"Its session, where the id alone is not unique."`
	JSON    bool     `name:"json" help:"Print the decision as JSON."`
}

// Run answers a question.
func (c *answerCmd) Run(e *env) error {
	return e.answer(c.Session, c.ID, ofWords(strings.Join(c.Answer, " ")), schemas.Answer{}, answerStyle{json: c.JSON})
}

// choice completes an answer with one of a request's options.
type choice func(*schemas.Prompt, *schemas.Answer) error

// ofKind chooses the option that allows or denies.
func ofKind(kind schemas.OptionKind) choice {
	return func(p *schemas.Prompt, a *schemas.Answer) error {
		if p.Request.Kind == schemas.KindQuestion && kind.Allows() {
			return fmt.Errorf("%s is a question: say nod answer %s, and the number of an answer or your own words", p.PendingID, p.PendingID)
		}
		option, ok := p.Request.OptionOfKind(kind)
		if !ok {
			return fmt.Errorf("%s offers no option of the kind %s: see nod show %s", p.PendingID, kind, p.PendingID)
		}
		a.OptionID = option.OptionID
		return nil
	}
}

// ofWords chooses a question's answer by its number, or gives one in words.
func ofWords(said string) choice {
	return func(p *schemas.Prompt, a *schemas.Answer) error {
		if p.Request.Kind != schemas.KindQuestion {
			return fmt.Errorf("%s is no question: say nod allow %s or nod deny %s", p.PendingID, p.PendingID, p.PendingID)
		}
		options := p.Request.Options
		n, err := strconv.Atoi(said)
		if err == nil && n >= 1 && n <= len(options) && !options[n-1].Text {
			a.OptionID = options[n-1].OptionID
			return nil
		}
		i := slices.IndexFunc(options, func(o schemas.Option) bool { return o.Text })
		if err == nil || i < 0 {
			return fmt.Errorf("%s has no answer %q: see nod show %s", p.PendingID, said, p.PendingID)
		}
		a.OptionID, a.Message = options[i].OptionID, said
		return nil
	}
}

type denyCmd struct {
	ID      string `arg:"" help:"Its id, or the beginning of it."`
	Session string `placeholder:"S" help:"Its session, where the id alone is not unique."`
	Message string `short:"m" placeholder:"TEXT" help:"Tell the agent why."`
	JSON    bool   `name:"json" help:"Print the decision as JSON."`
}

// Run denies a request once.
func (c *denyCmd) Run(e *env) error {
	return e.answer(c.Session, c.ID, ofKind(schemas.RejectOnce), schemas.Answer{Message: c.Message}, answerStyle{json: c.JSON})
}

// answerStyle is how an answer is given.
type answerStyle struct {
	json bool
	sure bool // of the rule that it is to leave behind
}

// answer brings one person's answer, and says what then holds.
func (e *env) answer(session, id string, choose choice, a schemas.Answer, style answerStyle) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	p, page, err := d.Show(ctx, session, id)
	if err != nil {
		return e.unshown(err, style.json)
	}
	if err := choose(&p, &a); err != nil {
		return err
	}
	if a.Scope != "" && p.Decision == nil && !style.sure {
		if err := e.confirm(&p, &a); err != nil {
			return err
		}
	}
	before := p.Decision
	a.SessionID, a.PendingID, a.Digest = p.SessionID, p.PendingID, p.Digest
	a.From = schemas.From{UserID: d.user}
	decision, err := d.Answer(ctx, a)
	if err != nil {
		return e.refused(err, page.Now, style.json)
	}
	if style.json {
		return e.printJSON(decision)
	}
	if before != nil {
		fmt.Fprintln(e.stdout, people.Already(&decision, page.Now))
		return nil
	}
	fmt.Fprintln(e.stdout, people.Outcome(&decision, p.Request.CreatedAt))
	return nil
}

// confirm has the person see what a lasting answer would allow, and say yes.
func (e *env) confirm(p *schemas.Prompt, a *schemas.Answer) error {
	if a.Reach >= len(p.Remember) {
		if len(p.Remember) == 0 {
			return fmt.Errorf("nod cannot say what a rule that allows %s again would allow besides: allow it once", p.PendingID)
		}
		return fmt.Errorf("--rule: there are %d; see nod show %s", len(p.Remember), p.PendingID)
	}
	reach := p.Remember[a.Reach]
	g := schemas.StandingAnswer{Scope: a.Scope, Rules: reach.Rules, Permissions: reach.Permissions, CreatedAt: time.Now()}
	if a.ForSeconds > 0 {
		g.ExpiresAt = g.CreatedAt.Add(time.Duration(a.ForSeconds) * time.Second)
	}
	fmt.Fprintf(e.stderr, "Besides this call, nod will allow from now on:\n  %s%s\n", people.Line(g.Reach()), people.Lasting(&g))
	if !e.interactive() {
		return errors.New("nothing was answered: say --yes if that is what you mean")
	}
	if !e.agree("Go on?") {
		return errors.New("nothing was answered")
	}
	return nil
}

// unshown says why a request could not be looked at. Nothing is uncertain then: no
// answer has been sent.
func (e *env) unshown(err error, asJSON bool) error {
	refused := e.refused(err, time.Now(), asJSON)
	var se *schemas.Error
	if errors.As(err, &se) && se.Code == schemas.CodeUnavailable {
		return fmt.Errorf("nothing was answered: %w", se)
	}
	return refused
}

// refused says why an answer changed nothing.
func (e *env) refused(err error, now time.Time, asJSON bool) error {
	var se *schemas.Error
	if !errors.As(err, &se) {
		return err
	}
	if asJSON {
		if err := e.printJSON(se); err != nil {
			return err
		}
	}
	switch se.Code {
	case schemas.CodeForbidden:
		return fmt.Errorf("nothing changed: %w", se)
	case schemas.CodeNotFound:
		return errors.New(people.Refusal(se, now) + " See nod pending.")
	}
	return errors.New(people.Refusal(se, now))
}

// width is the terminal's, or 0 where stdout is none.
func (e *env) width() int {
	f, ok := e.stdout.(*os.File)
	if !ok {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// readInput is a flag's text, the content of a file after @, or standard input
// for -.
func (e *env) readInput(text string) ([]byte, error) {
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(e.stdin, schemas.MaxRequestBytes+1))
		if err == nil && len(data) > schemas.MaxRequestBytes {
			err = fmt.Errorf("standard input is longer than the %d bytes that a request may have", schemas.MaxRequestBytes)
		}
		return data, err
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		return os.ReadFile(name)
	}
	return []byte(text), nil
}
