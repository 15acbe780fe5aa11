// Package codex is the way in for programs that drive Codex by its app-server: a
// sidecar between the two. Every line passes as it is, but for the approvals of
// commands and of file changes: nod is asked those in the client's place.
//
// Codex hears an accept only where nod's decision, or the client's own answer,
// allowed that very request.
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

// Options of a sidecar.
type Options struct {
	// Deny declines what nod cannot be asked, where otherwise the client is asked as
	// it would be without nod.
	Deny       bool
	Host, User string       // shown to people
	Log        *slog.Logger // nothing is logged of what was asked; nil is nowhere
}

const (
	// endWithin is what Codex gets to end when it is told to, and how long what it
	// started may keep its output open.
	endWithin      = 5 * time.Second
	withdrawWithin = 5 * time.Second
)

// Why a request is no longer waited for, as people read it.
var (
	errServerGone = errors.New("the server of Codex is gone")
	errClientGone = errors.New("the client of Codex is gone")
	errResolved   = errors.New("the server no longer waits for it")
	errReused     = errors.New("the server asked something else under the same id")
)

// sidecar is one client and one Codex.
type sidecar struct {
	opts Options
	nod  agents.Asker
	asks sync.WaitGroup
	half []byte // of a line that Codex has not ended yet

	// No other lock is held while one of these is written to: a peer may not read
	// before it has written.
	toClient, toServer peer

	mu    sync.Mutex
	gone  bool              // there is nobody to be told any more
	open  map[string]*ask   // by JSON-RPC id, as Codex wrote it
	items map[string]item   // what Codex has begun, by thread and item
	dirs  map[string]string // where each thread works
}

// Run starts Codex's app-server, stands between it and its client, and returns
// its exit code: 128 and its number where a signal ended it. It ends when Codex
// does; when the client is gone Codex's input is closed, and when ctx ends Codex
// is told to stop. What is then still asked is withdrawn. The error says why
// Codex could not be started.
func Run(ctx context.Context, argv []string, in io.Reader, out, stderr io.Writer, nod agents.Asker, o Options) (exit int, err error) {
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
	_ = cmd.Wait() // its state says how it ended
	s.endAll(errServerGone)
	s.asks.Wait()
	s.passToClient(s.half) // it ended in the middle of a line
	return exitCode(cmd), nil
}

func exitCode(cmd *exec.Cmd) int {
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// Write takes what Codex writes, in pieces of any size. It never fails: a client
// that does not read any more must not keep Codex from ending.
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

// fromServer takes a line that Codex wrote.
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

// peer is a side that lines are written to, from several goroutines.
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

// pass gives the client a line. What Codex says is read all the same where the
// client does not, so that Codex can end.
func (s *sidecar) passToClient(line []byte) {
	if err := s.toClient.write(line); err != nil {
		s.opts.Log.Debug("codex: the client does not read any more", "error", err)
	}
}

// tell gives Codex a line. Its end is told by its output.
func (s *sidecar) tellCodex(line []byte) {
	if err := s.toServer.write(line); err != nil {
		s.opts.Log.Debug("codex: Codex does not read any more", "error", err)
	}
}

// fromClient passes what the client writes until it ends.
func (s *sidecar) fromClient(in io.Reader, stdin io.Closer) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // what is answered from here on would be part of half a line
			s.endAll(errClientGone)
		}
		s.tellCodex(line)
		if err != nil {
			_ = stdin.Close() // it may be gone already
			return
		}
	}
}
