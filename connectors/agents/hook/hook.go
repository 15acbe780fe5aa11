// Package hook connects hosts, which are programs that run an agent and a hook before the agent uses a
// tool. The host writes the call to the standard input of the hook command. nod decides or asks a
// person, and the command writes one JSON object to its standard output.
//
// Run does this for every host. The Dialect of a host is the format of its input and output.
package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// OnUnavailable says how a hook handles a call while nod is not running.
type OnUnavailable string

// The values of OnUnavailable. An empty value means UnavailableAsk, and an unknown value means
// UnavailableDeny.
const (
	UnavailableAsk  OnUnavailable = "ask"  // while nod is not running, the host asks its own user
	UnavailableDeny OnUnavailable = "deny" // while nod is not running, the hook refuses the call
)

// Options configure a hook.
type Options struct {
	// HostTimeout is how long the host waits for the hook. Zero means 60 s, the shortest default of any
	// host. The hook denies the call before that, because some hosts kill a late hook and then run the
	// tool: 30 s before or, if HostTimeout is less than 60 s, at half of it.
	HostTimeout time.Duration
	// OnUnavailable is UnavailableAsk if it is empty.
	OnUnavailable OnUnavailable
	// People see Host, which is the machine's name, User and SessionLabel. If SessionLabel is empty, it
	// is the last element of the working directory's path.
	Host, User, SessionLabel string
	// Project is the full path of the project in which the host was started. If it is empty, the
	// dialect finds the project.
	Project string
	// Contain is schemas.ContainPossible if this machine can run calls contained and Project is known.
	// Otherwise it is the reason why not. It has no effect for a host whose hook cannot change a call.
	Contain string
	// Nod is the nod program by which a call runs contained. If its Path is empty, no call runs contained.
	Nod schemas.NodProgram
	// ChangesInput is true if the host's version is at least Host.ChangesSince.
	ChangesInput bool
	// DeferAfter is how long the hook waits for a decision; zero means no limit. After that, it depends
	// on the turn (see Turn). If the turn is Alone, the hook tells the host to end its run and to repeat
	// the call later. If the turn is Shared, the hook denies the call, and the request stays pending.
	DeferAfter time.Duration
	// ApprovedOnly makes the hook ask nod only about calls that a person may have approved, according to
	// a note of the hook at Setup.Denied (see Unsettled). The hook leaves every other call to the host.
	// It also leaves a call to the host if it fails.
	ApprovedOnly bool
	// Turns makes the hook run only at the events Setup.Turns. If InTerminal is also true, the hook tells
	// people that the agent's turn is over, and waits for a reply as the agent's next prompt. If the hook
	// fails, it lets the host continue, because the host would take a refusal for the next prompt.
	Turns bool
	// InTerminal is true if the host's user started the host in a terminal. If it is false, another
	// program started the host, and waits for the end of the turn.
	InTerminal bool
	// Waits records that this process waits for a request. The hook calls Waits before it sends the
	// request, and calls unregister when it no longer waits. It may call unregister twice.
	Waits agents.Waits
	// Unsettled contains notes about the calls that nod did not simply allow. If it is nil, the hook
	// passes every report of the host on to nod.
	Unsettled Unsettled
	// Stderr gets one line about each failure, without the content of requests. It may be nil.
	Stderr io.Writer
}

// Unsettled stores notes, each about a session and a tool. There is a note if nod did not simply allow a
// call of the tool. All hook processes share the notes. Sessions have nod's ids. A host reports the end
// of every call, but nod needs only the reports about tools with a note: the host's user may have
// answered at the host's own prompt, or the host may have run a call without its container.
type Unsettled interface {
	Note(sessionID, tool string) error
	// Noted reports whether there is a note about this tool or, if tool is empty, about any tool. It
	// also returns true if it cannot read the notes.
	Noted(sessionID, tool string) bool
	// Forget removes all notes of a session that has ended.
	Forget(sessionID string)
}

const (
	connectWithin = 10 * time.Second
	reportWithin  = 3 * time.Second
	// noticesWithin is the longest time for which notices delay a user's prompt.
	noticesWithin = 300 * time.Millisecond
	// settledWithin is the time limit for nod to decide a call by itself. If nod takes longer, the call
	// gets a note; see Unsettled.
	settledWithin = 2 * time.Second
	// maxInput is the largest input in bytes. It is far above nod's limit, because the hook must parse
	// an input that is too large for nod in order to refuse it in the host's format.
	maxInput = 4 << 20
)

// Nod is the interface to nod that a hook needs.
type Nod interface {
	agents.Asker
	// Detach keeps a request pending although the host no longer waits for it. If a person allows it
	// later, the agent's next identical call is allowed, but only one.
	Detach(ctx context.Context, sessionID, pendingID, reason string) error
	// HostResolved withdraws the requests that p describes, because the host no longer waits for them.
	HostResolved(ctx context.Context, p schemas.HostResolved) error
	// TakeNotices returns the notices that nod has kept for a session. nod then forgets them.
	TakeNotices(ctx context.Context, sessionID string) ([]schemas.Notice, error)
}

// Connect connects to nod. If nod is not running, the error is a *schemas.Error with the code
// UNAVAILABLE. ctx limits only the time to connect: the connection must outlive ctx.
type Connect func(context.Context) (Nod, error)

var (
	errDeadline = errors.New("no approver answered before the hook's deadline")
	errLate     = errors.New("nod did not answer in time")
)

// Run answers one input of a hook of host, and returns the exit code of the process. It always writes
// exactly one JSON object to stdout, even after a panic. It writes an allow only if nod allowed exactly
// this call. When ctx ends (see Lifetime), Run denies the call and withdraws its request. At its own
// deadline (see Options.HostTimeout), Run denies the call and detaches its request. A call that asks its
// user a question is an exception: in both cases, Run leaves the question to the host and withdraws the
// request.
func Run(ctx context.Context, host Host, stdin io.Reader, stdout io.Writer, connect Connect, o Options) (exit int) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.deadline(), errDeadline)
	defer cancel()
	h := &run{host: host, connect: connect, opts: o, stdout: stdout}
	defer func() {
		if p := recover(); p != nil {
			exit = h.refuseAfterPanic(p)
		}
	}()

	err := h.read(ctx, stdin)
	if h.opts.ApprovedOnly && (err != nil || !h.mayBeApproved()) {
		return h.reply(Verdict{Effect: Leave})
	}
	if err != nil && (h.call.Signal || h.opts.Turns) {
		h.log(err)
		return h.reply(Verdict{Effect: Leave})
	}
	if err != nil {
		h.log(err)
		return h.reply(deny("nod refused the call: " + err.Error()))
	}
	if h.call.Ignore != "" {
		h.log(errors.New(h.call.Ignore))
		return h.reply(Verdict{Effect: Leave})
	}
	if h.call.Signal {
		if h.call.HostResolved.Reason != "" {
			h.reportResolved(ctx)
		}
		if h.opts.Turns && h.opts.InTerminal && h.call.TurnOver != nil && h.call.SessionID != "" {
			if turn := h.call.TurnOver(); turn != nil {
				return h.askForPrompt(ctx, *turn)
			}
		}
		return h.reply(Verdict{Effect: Leave, Notices: h.takeNotices(ctx)})
	}
	nod, err := h.dial(ctx)
	if err != nil && (h.call.asksUser() || h.call.Denied || h.opts.ApprovedOnly) {
		h.log(err)
		return h.reply(Verdict{Effect: Leave})
	}
	if err != nil {
		h.log(err)
		return h.reply(h.withoutNod(err))
	}
	if h.call.Denied {
		return h.askAboutDenied(ctx, nod)
	}
	if h.call.Questions != nil {
		return h.askQuestions(ctx, nod)
	}
	if h.call.Plan {
		return h.askPlan(ctx, nod)
	}
	if h.call.ToolName == probeTool {
		return h.answerProbe(ctx, nod)
	}
	return h.ask(ctx, nod)
}

type run struct {
	host    Host
	connect Connect
	opts    Options
	stdout  io.Writer
	nod     Nod   // the connection to nod; nil before the first call of dial
	noNod   error // the reason why dial has failed
	call    Call  // the call, as far as the hook could parse the input
	replied bool
	// unwritten is true if the host received no reply, because reply could not write it.
	unwritten bool
}

// read reads and parses the whole input. It checks the fields that every call needs.
func (h *run) read(ctx context.Context, stdin io.Reader) error {
	input, err := callUntil(ctx, "reading the hook's input", func(context.Context) ([]byte, error) {
		return io.ReadAll(io.LimitReader(stdin, maxInput+1))
	})
	switch {
	case err != nil:
		return fmt.Errorf("read the hook's input: %w", err)
	case len(input) > maxInput:
		return fmt.Errorf("the hook's input is larger than %d MiB", maxInput>>20)
	case !utf8.Valid(input):
		return errors.New("the hook's input is not UTF-8")
	}
	h.call, err = h.host.Dialect.Read(input)
	h.call.ChangesInput = h.host.ChangesInput || h.host.ChangesSince != "" && h.opts.ChangesInput
	if err != nil || h.call.Ignore != "" || h.call.Signal {
		return err
	}
	return h.call.check()
}

// check returns an error if the call lacks a session or a tool, or if its input is not a JSON object.
func (c Call) check() error {
	switch {
	case c.SessionID == "":
		return errors.New("the hook's input names no session")
	case c.ToolName == "":
		return errors.New("the hook's input names no tool")
	case !agents.IsObject(c.Input):
		return errors.New("the tool's input is not a JSON object")
	}
	return nil
}

// asksUser reports whether the call asks the user to answer questions or to approve a plan.
func (c Call) asksUser() bool { return c.Questions != nil || c.Plan }

// dial returns the connection to nod. Its first call connects.
func (h *run) dial(ctx context.Context) (Nod, error) {
	if h.nod != nil || h.noNod != nil {
		return h.nod, h.noNod
	}
	limited, cancel := context.WithTimeoutCause(ctx, connectWithin, errLate)
	defer cancel()
	nod, err := callUntil(limited, "connecting to nod", h.connect)
	if err == nil && nod == nil {
		err = errors.New("connecting to nod returned no connection")
	}
	if err == nil {
		h.nod = nod
	}
	h.noNod = err
	return nod, err
}

// withoutNod returns the verdict if the hook could not connect to nod. The host may ask its own user
// only if nod is not running, or did not reply within connectWithin.
func (h *run) withoutNod(err error) Verdict {
	missing := errors.Is(err, errLate) || errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable})
	ask := h.opts.OnUnavailable == UnavailableAsk || h.opts.OnUnavailable == ""
	switch {
	case missing && ask:
		return Verdict{Effect: AskHost, Reason: "nod cannot be reached: " + err.Error()}
	case missing:
		return deny("nod cannot be reached, and calls are refused without it: " + err.Error())
	}
	return deny("nod could not be asked: " + err.Error())
}

// ask sends the call to nod and replies to the host with the decision. If there is no decision, it replies
// before it withdraws or detaches the request, because the host may kill this process soon after the reply.
func (h *run) ask(ctx context.Context, nod Nod) int {
	r, err := newRequest(h.host, h.call, h.opts)
	if err != nil {
		h.log(err)
		return h.reply(deny("nod refused the call: " + err.Error()))
	}
	ctx, stop := h.untilStopped(ctx, errStopped)
	defer stop()
	waiting, cancel := h.untilDeferred(ctx)
	defer cancel()
	unregister := h.registerWait(r)
	defer unregister()
	settled := h.noteUnlessSettled(r)
	d, err := callUntil(waiting, "asking nod", func(ctx context.Context) (schemas.Decision, error) {
		return nod.Ask(ctx, r)
	})
	settled(err == nil && d.Outcome == schemas.Allowed && d.UpdatedInput == nil && d.By.Kind != schemas.ByHuman)
	if err == nil {
		v := h.withNotices(ctx, verdict(h.call, r, d))
		unregister() // before the reply, because nod need not withdraw r if this process dies after it
		exit := h.reply(v)
		if d.Outcome == schemas.Allowed && h.hostMovedOn(ctx) {
			h.reportUnheard(ctx, nod, r)
		}
		return exit
	}
	h.log(err)
	leave, exit := nod.Withdraw, 0
	switch {
	case errors.Is(err, errDefer):
		leave, exit = nod.Detach, h.reply(Verdict{Effect: Defer, Reason: "No approver has answered yet; the request stays open."})
	case errors.Is(err, errDeadline), errors.Is(err, errShared):
		leave, exit = nod.Detach, h.reply(deny(stillOpen))
	default:
		exit = h.reply(deny("Not allowed, because nod could not get a decision: " + err.Error()))
	}
	if agents.MayBeOpen(err) {
		h.release(ctx, leave, r, err.Error())
	}
	return exit
}

// stillOpen tells the agent that its call is denied only for now, because the request stays pending.
const stillOpen = "No approver answered in time, so this call is denied for now. The request stays open: if it is approved later, make the same call again and it is allowed."

// release ends the wait for r by the function how, which is Nod.Withdraw or Nod.Detach. It also works if
// ctx has ended. After an error it only logs.
func (h *run) release(ctx context.Context, how func(ctx context.Context, sessionID, pendingID, reason string) error, r schemas.Request, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.opts.withdrawWithin())
	defer cancel()
	_, err := callUntil(ctx, "leaving the request", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, how(ctx, r.SessionID, r.PendingID, reason)
	})
	if err != nil {
		h.log(err)
	}
}

// reply writes v to stdout, and returns the exit code. Only its first call writes. Later calls return
// exitBlock.
func (h *run) reply(v Verdict) int {
	if h.replied {
		return exitBlock
	}
	out, exit := h.host.Dialect.Reply(h.call, v)
	h.replied = true
	if _, err := h.stdout.Write(append(out, '\n')); err != nil {
		h.unwritten = true
		h.log(fmt.Errorf("write the reply: %w", err))
		return exitBlock
	}
	return exit
}

// exitBlock is an exit code. For most hosts it is a refusal, whatever is on stdout.
const exitBlock = 2

// refuseAfterPanic replies with a refusal after a panic in nod's code.
func (h *run) refuseAfterPanic(p any) (exit int) {
	h.log(fmt.Errorf("internal error: %v", p))
	if h.replied {
		return exitBlock
	}
	defer func() {
		if recover() != nil { // the dialect itself panicked
			exit = Refuse(h.stdout)
		}
	}()
	if h.call.asksUser() || h.call.Signal || h.opts.Turns { // the hook can refuse neither a question nor a signal
		return h.reply(Verdict{Effect: Leave})
	}
	return h.reply(deny("nod failed on this call and refused it."))
}

// log writes err to Stderr as one line.
func (h *run) log(err error) {
	if h.opts.Stderr != nil {
		line := strings.Join(strings.Fields(err.Error()), " ")
		_, _ = fmt.Fprintf(h.opts.Stderr, "nod hook %s: %s\n", h.host.Name, line)
	}
}
