// Package codex lets nod decide the approval requests of Codex's app-server. With such a request, Codex
// asks whether it may run a command or change files. The package is a sidecar between Codex and the
// client, which is the program that controls Codex through the app-server. The sidecar passes every
// line unchanged, except for the approval requests, which nod decides instead of the client.
//
// Codex gets "accept" only if nod's decision, or the client's own answer, allowed exactly that request.
package codex

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/nodbus/nod/connectors/agents"
)

// Options configure a sidecar.
type Options struct {
	// Deny makes the sidecar decline an approval request while nod is unavailable. If Deny is false,
	// the client gets the request instead.
	Deny       bool
	Waits      agents.Waits // records that this process waits for a decision
	Host, User string       // the names of this machine and its user, which people see
	Log        *slog.Logger // the log of failures, without the content of requests; nil discards it
}

const (
	// endWithin is the time between SIGTERM and SIGKILL for Codex. It also limits how long the sidecar
	// reads Codex's output after Codex has ended, because child processes of Codex may keep the output
	// open.
	endWithin      = 5 * time.Second
	withdrawWithin = 5 * time.Second
)

// The reasons for which the sidecar withdraws a request. People read them.
var (
	errServerGone = errors.New("the Codex server is gone")
	errClientGone = errors.New("the client of the Codex server is gone")
	errResolved   = errors.New("no longer needed by Codex")
	errReused     = errors.New("replaced by a request of Codex with the same id")
)

type sidecar struct {
	opts Options
	nod  agents.CallAsker
	asks sync.WaitGroup
	half []byte // the unfinished last line of Codex's output

	// A goroutine must not hold mu while it writes to a peer. The peer may stop reading until the
	// sidecar has read the peer's output, and the sidecar needs mu for that.
	toClient, toServer peer

	mu    sync.Mutex
	gone  bool              // the sidecar cannot deliver an answer, because Codex or its client is gone
	open  map[string]*ask   // the approval requests without an answer, by their JSON-RPC ids as Codex wrote them
	items map[string]item   // the file changes that Codex has started, by itemKey; the client gets the request for a change that is missing here
	dirs  map[string]string // the working directories, by thread; without the directory, nod asks a person
}

// Run starts Codex's app-server with the command argv, and connects it to the client at in and out.
// When the client is gone, Run closes Codex's input. When ctx ends, Codex gets SIGTERM, and SIGKILL
// after endWithin. When Codex has ended, Run withdraws all pending requests, and returns Codex's exit
// code, or 128 plus the signal's number if a signal ended Codex. Run returns an error only if it could
// not start Codex.
func Run(ctx context.Context, argv []string, in io.Reader, out, stderr io.Writer, nod agents.CallAsker, o Options) (exit int, err error) {
	if len(argv) == 0 {
		return 0, errors.New("name Codex's command after --, such as: codex app-server")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &sidecar{opts: o, nod: nod, toClient: peer{w: out}, open: map[string]*ask{}, items: map[string]item{}, dirs: map[string]string{}}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endWithin
	cmd.Stdout, cmd.Stderr = s, stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe to Codex: %w", err)
	}
	s.toServer.w = stdin
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start Codex: %w", err)
	}
	go s.fromClient(in, stdin)
	_ = cmd.Wait() // cmd.ProcessState also has the result
	s.endAll(errServerGone)
	s.asks.Wait()
	s.passToClient(s.half) // if Codex ended in the middle of a line, pass on the unfinished line
	return exitCode(cmd), nil
}

func exitCode(cmd *exec.Cmd) int {
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// Write receives pieces of Codex's output, and handles each complete line. It never returns an error,
// because Codex must be able to end even if the client no longer reads.
func (s *sidecar) Write(p []byte) (int, error) {
	s.half = append(s.half, p...)
	for {
		end := bytes.IndexByte(s.half, '\n')
		if end < 0 {
			return len(p), nil
		}
		line := bytes.Clone(s.half[:end+1])
		s.half = s.half[end+1:]
		s.fromServer(line)
	}
}

func (s *sidecar) fromServer(line []byte) {
	m := object(line)
	params := object(m["params"])
	switch method := text(m["method"]); {
	case isApproval(method) && m["id"] != nil:
		s.intercept(&ask{line: line, id: m["id"], method: method, params: params, raw: m["params"]})
		return
	case method == "" && m["result"] != nil:
		s.threadResult(object(m["result"]))
	case method == "thread/started":
		s.threadStarted(object(params["thread"]))
	case method == "thread/settings/updated":
		s.setDir(text(params["threadId"]), text(object(params["threadSettings"])["cwd"]))
	case method == "item/started":
		s.itemStarted(params)
	case method == "item/completed":
		s.itemCompleted(params)
	case method == "turn/completed":
		s.turnCompleted(params)
	case method == "serverRequest/resolved":
		id := string(params["requestId"])
		s.endMatching(errResolved, func(a *ask) bool { return string(a.id) == id })
	}
	s.passToClient(line)
}

// peer is an output to which several goroutines write lines.
type peer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *peer) write(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.w.Write(line)
	return err
}

// passToClient writes a line to the client. It only logs an error. The sidecar must read Codex's output
// even if the client no longer reads, so that Codex can end.
func (s *sidecar) passToClient(line []byte) {
	if err := s.toClient.write(line); err != nil {
		s.opts.Log.Debug("codex: the client does not read any more", "error", err)
	}
}

// tellCodex writes a line to Codex. It only logs an error, because Run ends anyway if Codex is gone.
func (s *sidecar) tellCodex(line []byte) {
	if err := s.toServer.write(line); err != nil {
		s.opts.Log.Debug("codex: Codex does not read any more", "error", err)
	}
}

// fromClient passes the client's output on to Codex. When the output ends, fromClient withdraws all
// pending requests and closes Codex's input.
func (s *sidecar) fromClient(in io.Reader, stdin io.Closer) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // no answer may follow, because it would continue an unfinished last line of the client
			s.endAll(errClientGone)
		}
		s.tellCodex(line)
		if err != nil {
			_ = stdin.Close() // Close fails if Codex is gone already
			return
		}
	}
}
