package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// desk is the terminal connector's, for this user.
type desk struct {
	*connector.Desk
	conn *bus.Conn
	user string
}

func (e *env) desk(ctx context.Context) (*desk, error) {
	u, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("find out who answers: %w", err)
	}
	conn, err := bus.Join(ctx, e.place, roles.ConnectorID(schemas.ConnectorTerminal), e.log)
	if err != nil {
		return nil, err
	}
	e.warnOpen(conn.Open())
	return &desk{connector.NewDesk(conn, schemas.ConnectorTerminal), conn, u.Username}, nil
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
}

func list(p schemas.Prompt) listed {
	return listed{p.Request, p.Agent, p.Digest, p.Risk, p.Reasons, p.Tier, p.Deadline, p.Revision, p.Decision}
}

type pendingCmd struct {
	Session string `placeholder:"S" help:"Only of this session."`
	JSON    bool   `name:"json" help:"Print a JSON array."`
}

// Run lists what is undecided.
func (c *pendingCmd) Run(e *env) error {
	ctx, cancel := e.soon()
	defer cancel()
	d, err := e.desk(ctx)
	if err != nil {
		return err
	}
	defer d.conn.Close()
	prompts, err := d.Pending(ctx, schemas.Query{SessionID: c.Session})
	if err != nil {
		return err
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
	ctx, cancel := e.soon()
	defer cancel()
	d, err := e.desk(ctx)
	if err != nil {
		return err
	}
	defer d.conn.Close()
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
	JSON    bool   `name:"json" help:"Print the decision as JSON."`
}

// Run allows a request once.
func (c *allowCmd) Run(e *env) error {
	a := schemas.Answer{Message: c.Message}
	if c.Input != "" {
		input, err := e.readInput(c.Input)
		if err != nil {
			return fmt.Errorf("read --input: %w", err)
		}
		a.UpdatedInput = input
	}
	return e.answer(c.Session, c.ID, schemas.AllowOnce, a, c.JSON)
}

type denyCmd struct {
	ID      string `arg:"" help:"Its id, or the beginning of it."`
	Session string `placeholder:"S" help:"Its session, where the id alone is not unique."`
	Message string `short:"m" placeholder:"TEXT" help:"Tell the agent why."`
	JSON    bool   `name:"json" help:"Print the decision as JSON."`
}

// Run denies a request once.
func (c *denyCmd) Run(e *env) error {
	return e.answer(c.Session, c.ID, schemas.RejectOnce, schemas.Answer{Message: c.Message}, c.JSON)
}

// answer brings one person's answer, and says what then holds.
func (e *env) answer(session, id string, kind schemas.OptionKind, a schemas.Answer, asJSON bool) error {
	ctx, cancel := e.soon()
	defer cancel()
	d, err := e.desk(ctx)
	if err != nil {
		return err
	}
	defer d.conn.Close()
	p, page, err := d.Show(ctx, session, id)
	if err != nil {
		return e.refused(err, time.Now(), asJSON)
	}
	option, ok := p.Request.OptionOfKind(kind)
	if !ok {
		return fmt.Errorf("%s offers no option of the kind %s: see nod show %s", p.PendingID, kind, p.PendingID)
	}
	before := p.Decision
	a.SessionID, a.PendingID, a.Digest = p.SessionID, p.PendingID, p.Digest
	a.OptionID, a.From = option.OptionID, schemas.From{UserID: d.user}
	decision, err := d.Answer(ctx, a)
	if err != nil {
		return e.refused(err, page.Now, asJSON)
	}
	if asJSON {
		return e.printJSON(decision)
	}
	if before != nil {
		fmt.Fprintln(e.stdout, people.Already(&decision, page.Now))
		return nil
	}
	fmt.Fprintln(e.stdout, people.Outcome(&decision, p.Request.CreatedAt))
	return nil
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
	if se.Code == schemas.CodeForbidden {
		return fmt.Errorf("nothing changed: %w", se)
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
		return io.ReadAll(io.LimitReader(e.stdin, schemas.MaxRequestBytes+1))
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		return os.ReadFile(name)
	}
	return []byte(text), nil
}
