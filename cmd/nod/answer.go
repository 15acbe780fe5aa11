package main

import (
	"context"
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

// A desk lists and answers requests in this user's name. It connects as the terminal connector.
type desk struct {
	*connector.Desk
	user string
}

// desk connects as the terminal connector for one command. The caller must call
// done, which closes the connection and cancels ctx.
func (e *env) desk() (ctx context.Context, d *desk, done func(), err error) {
	u, err := user.Current()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("find this user's name: %w", err)
	}
	ctx, conn, done, err := e.join(roles.ConnectorID(schemas.ConnectorTerminal))
	if err != nil {
		return nil, nil, nil, err
	}
	return ctx, &desk{connector.NewDesk(conn, schemas.ConnectorTerminal), u.Username}, done, nil
}

type showCmd struct {
	ID      string `arg:"" optional:"" help:"The request's id, or the beginning of it; without an id, the one that waits."`
	Session string `placeholder:"S" help:"The request's session, if the id alone is not unique."`
	Exact   bool   `xor:"form" help:"Print the input exactly as the agent sent it."`
	JSON    bool   `name:"json" xor:"form" help:"Print one JSON object."`
}

func (c *showCmd) Run(e *env) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	p, page, err := e.find(ctx, d, c.Session, c.ID, nil)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeNotFound}) && schemas.ValidID(c.ID) {
		return c.showLogged(e, d, err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(rowOf(p))
	}
	p.Request.CreatedAt = p.Request.CreatedAt.Local()
	parts := people.PrintedParts(&p, page.Now.Local())
	if c.Exact {
		parts = people.Exact(&p)
	}
	e.printParts(e.stdout, parts)
	return nil
}

// showLogged shows a request without a record, from the log. If the log does not have the request, it
// returns the error unknown.
func (c *showCmd) showLogged(e *env, d *desk, unknown error) error {
	l, err := e.findLogged(d, c.Session, c.ID)
	if err != nil && !errors.Is(err, &schemas.Error{Code: schemas.CodeUnknownAction}) {
		return err
	}
	if l == nil {
		return unknown
	}
	if c.JSON {
		return e.printJSON(loggedRowOf(l))
	}
	l.AskedAt = l.AskedAt.Local()
	p, known := people.FromLog(l)
	switch {
	case c.Exact && (!known || l.Redacted > 0):
		return fmt.Errorf("the exact input of %s is not kept: its record is gone, and the log has it only with log.payloads and without secrets", p.PendingID)
	case c.Exact:
		e.printParts(e.stdout, people.Exact(&p))
	default:
		e.printParts(e.stdout, people.LoggedParts(l))
	}
	return nil
}

type answerCmd struct {
	ID      string   `arg:"" optional:"" help:"The question's id, or the beginning of it. It may be left out if a single question waits."`
	Answer  []string `arg:"" optional:"" help:"The number of an answer (see nod show), or your own words; without any, nod shows the question and reads the answer."`
	Session string   `placeholder:"S" help:"The request's session, if the id alone is not unique."`
	JSON    bool     `name:"json" help:"Print the decision as JSON."`
}

func (c *answerCmd) Run(e *env) error {
	id, said := c.ID, c.Answer
	if id == "" {
		return e.answerTyped(c.Session, c.JSON)
	}
	if len(said) == 0 {
		id, said = "", []string{c.ID}
	}
	return e.answer(c.Session, id, ofWords(strings.Join(said, " ")), schemas.Answer{}, answerStyle{
		json: c.JSON, only: isQuestion, confirm: fmt.Sprintf("Answer %q?", strings.Join(said, " ")),
	})
}

// answerTyped shows the only pending question, or the question that the user picks, and reads the
// answer from the terminal.
func (e *env) answerTyped(session string, asJSON bool) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	p, page, err := e.find(ctx, d, session, "", isQuestion)
	done()
	if err != nil {
		return e.notRead(err, asJSON)
	}
	if !e.interactive() {
		return fmt.Errorf("nothing was answered: say nod answer %s, and the number of an answer or your own words; see nod show %[1]s", p.PendingID)
	}
	e.printParts(e.stderr, people.PrintedParts(&p, page.Now.Local()))
	said := e.typedLine("Your answer (a number, or your own words): ")
	if said == "" {
		return errors.New("nothing was answered")
	}
	return e.answer(p.SessionID, p.PendingID, ofWords(said), schemas.Answer{}, answerStyle{json: asJSON})
}

func isQuestion(p *schemas.Prompt) bool { return p.Request.Kind == schemas.KindQuestion }
func isCall(p *schemas.Prompt) bool     { return p.Request.Kind != schemas.KindQuestion }

// A choice sets the option of an answer to one of the options in the prompt.
type choice func(*schemas.Prompt, *schemas.Answer) error

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

// ofWords returns the choice for the words that the user typed. A number chooses the option with that
// number. Any other words choose the free-text option and become the text of the answer. The choice
// returns an error if the request does not ask for a choice or a text, or has no matching option.
func ofWords(said string) choice {
	return func(p *schemas.Prompt, a *schemas.Answer) error {
		if p.Request.Kind != schemas.KindQuestion {
			return fmt.Errorf("%s is no question: say nod allow %s or nod deny %s", p.PendingID, p.PendingID, p.PendingID)
		}
		options := p.Request.Options
		n, err := strconv.Atoi(said)
		if err == nil && waitsForWords(p) {
			return fmt.Errorf("%s may be the words that %s waits for, or the number of a choice: write more words, or say nod deny %[2]s to leave it", said, p.PendingID)
		}
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

// waitsForWords reports whether a question can be answered only by words, such as an agent's next
// prompt.
func waitsForWords(p *schemas.Prompt) bool {
	return isQuestion(p) && !slices.ContainsFunc(p.Request.Options, func(o schemas.Option) bool { return o.Kind.Allows() && !o.Text })
}

type denyCmd struct {
	ID      string `arg:"" optional:"" help:"The request's id, or the beginning of it; without an id, the one that waits."`
	Session string `placeholder:"S" help:"The request's session, if the id alone is not unique."`
	Message string `short:"m" placeholder:"TEXT" help:"Tell the agent why."`
	JSON    bool   `name:"json" help:"Print the decision as JSON."`
}

func (c *denyCmd) Run(e *env) error {
	choose := func(p *schemas.Prompt, a *schemas.Answer) error {
		if c.Message != "" && waitsForWords(p) {
			return fmt.Errorf("nothing was answered: the agent reads words only as an answer: say nod answer %s and the words, or nod deny %[1]s without words", p.PendingID)
		}
		return ofKind(schemas.RejectOnce)(p, a)
	}
	return e.answer(c.Session, c.ID, choose, schemas.Answer{Message: c.Message}, answerStyle{json: c.JSON, only: isCall, confirm: "Deny it?"})
}

// answerStyle contains the flags of an answering command that do not change the answer.
type answerStyle struct {
	json    bool
	sure    bool                       // the user need not confirm the rule of a lasting allow
	only    func(*schemas.Prompt) bool // a filter for the requests that the command considers if the user names no request
	confirm string                     // the question to the user before the command answers a request that the user did not name
}

// answer sends this user's answer and prints the decision. If the request was decided earlier, it
// prints the earlier decision.
func (e *env) answer(session, id string, choose choice, a schemas.Answer, style answerStyle) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	p, page, err := e.find(ctx, d, session, id, style.only)
	if err != nil {
		return e.notRead(err, style.json)
	}
	if err := choose(&p, &a); err != nil {
		return err
	}
	if id == "" {
		if err := e.showFirst(&p, page.Now, style.confirm); err != nil {
			return err
		}
	}
	if a.Scope != "" && p.Decision == nil && !style.sure {
		if err := e.confirm(&p, &a); err != nil {
			return err
		}
	}
	before := p.Decision
	a.SessionID, a.PendingID, a.Digest, a.Waiters = p.SessionID, p.PendingID, p.Digest, p.Waiters
	a.From = schemas.From{UserID: d.user}
	p.Request.CreatedAt, page.Now = p.Request.CreatedAt.Local(), page.Now.Local()
	ctx, cancel := e.soon() // the user may have taken long to confirm, so the answer gets a new time limit
	defer cancel()
	decision, err := d.Answer(ctx, a)
	if err != nil {
		return e.refused(err, page.Now, style.json)
	}
	if style.json {
		return e.printJSON(decision)
	}
	if before != nil {
		fmt.Fprintln(e.stdout, people.AlreadyDecided(&decision, page.Now))
		return nil
	}
	fmt.Fprintln(e.stdout, people.Recorded(&decision, &p))
	return nil
}

// confirm shows the rule that a lasting allow creates, and asks the user to confirm it.
func (e *env) confirm(p *schemas.Prompt, a *schemas.Answer) error {
	reach := p.Remember[a.Reach]
	g := schemas.StandingAnswer{Scope: a.Scope, Rules: reach.Rules, Permissions: reach.Permissions, CreatedAt: time.Now()}
	if a.ForSeconds > 0 {
		g.ExpiresAt = g.CreatedAt.Add(time.Duration(a.ForSeconds) * time.Second)
	}
	fmt.Fprintf(e.stderr, "Besides this call, nod will allow:\n  %s%s\n", people.Line(g.Reach()), people.ScopeAndTerm(&g))
	if !e.interactive() {
		return fmt.Errorf("nothing was answered: to confirm, add --yes --rule %s", shellQuoted(reach.String()))
	}
	if !e.agree("Go on?") {
		return errors.New("nothing was answered")
	}
	return nil
}

// shellQuoted returns text quoted as one word for a shell.
func shellQuoted(text string) string {
	return "'" + strings.ReplaceAll(people.Line(text), "'", `'\''`) + "'"
}

// notRead returns the error to show if a request could not be read. If nod is unavailable, the error
// says that no request was answered.
func (e *env) notRead(err error, asJSON bool) error {
	refused := e.refused(err, time.Now(), asJSON)
	var se *schemas.Error
	if errors.As(err, &se) && se.Code == schemas.CodeUnavailable {
		return fmt.Errorf("nothing was answered: %w", se)
	}
	return refused
}

// refused turns an error from nod into an error with a message for people. With asJSON it also prints
// the original error as JSON.
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
	case schemas.CodeVoted:
		if !asJSON {
			fmt.Fprintln(e.stdout, people.Refusal(se, now))
		}
		return exit(exitOpen)
	case schemas.CodeForbidden:
		return fmt.Errorf("nothing changed: %w", se)
	case schemas.CodeNotFound:
		return errors.New(people.Refusal(se, now) + " See nod pending.")
	}
	return errors.New(people.Refusal(se, now))
}

// width returns the terminal's width in columns, or 0 if stdout is not a terminal.
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

// textWidth returns the width, in columns, at which nod breaks lines of text, or 0 for no limit. If stdout is
// not a terminal, it is the value of COLUMNS. Rows of tables are never cut for a pipe, so they use width.
func (e *env) textWidth() int {
	if w := e.width(); w > 0 {
		return w
	}
	w, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || w < 0 {
		return 0
	}
	return w
}

// readInput returns the value of --input. For @FILE it returns the content of the file, for - the
// content of standard input, and otherwise the value itself.
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
