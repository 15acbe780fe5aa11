// Package mcpgate is a program that a client starts instead of an MCP server. It starts the server, and
// passes every message on. nod decides each tools/call before it reaches the server.
//
// The gate parses each message of the client. It refuses a message that two readers could understand in
// different ways. It writes every other message anew, in one line. A tools/call reaches the server only
// if nod's decision allowed exactly this tool with exactly these arguments.
package mcpgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/relay"
)

// Nod is the interface to nod that the gate needs.
type Nod interface {
	agents.Asker
	// Detach keeps a request pending although the client no longer waits for it. If a person then
	// allows the request, the session's next identical call is allowed, but only one.
	Detach(ctx context.Context, sessionID, pendingID, reason string) error
}

// Options configure a gate.
type Options struct {
	// Name is the server's name in rules and prompts. The name of a tool in rules is mcp__NAME__TOOL.
	// CheckName checks the name.
	Name string
	// Server is the server's command or URL, for people.
	Server string
	// Session is the nod session to which the calls belong.
	Session string
	// Host and User are the names of the client's machine and user, for people. Project is the full
	// path of the client's project; empty means unknown.
	Host, User, Project string
	// Definitions is the folder for the definitions of tools with which nod allowed calls. If it is empty,
	// the gate keeps them in memory, and does not notice a change since the end of an earlier gate.
	Definitions string
	// Waits records that this process waits for a decision.
	Waits agents.Waits
	// Progress is the interval at which a client whose call waits gets progress notifications; 0 means
	// 20 s.
	Progress time.Duration
	// Log is the log of failures, and of the methods of the server's requests to the client. It never
	// contains the content of a message. nil discards it.
	Log *slog.Logger
}

const (
	progressEvery  = 20 * time.Second
	firstProgress  = time.Second
	withdrawWithin = 5 * time.Second
)

// The reasons for which the gate withdraws a question. People read them.
var (
	errClientGone = errors.New("the client is gone")
	errServerGone = errors.New("the MCP server is gone")
	errCancelled  = errors.New("the client cancelled the call")
	errTimedOut   = errors.New("the client no longer waits for the answer")
	errReused     = errors.New("the client sent another request with the same id")
)

type gate struct {
	nod      Nod
	opts     Options
	tools    *tools
	server   io.Closer
	toClient *relay.LineWriter
	calls    sync.WaitGroup

	// A goroutine must hold sending while it writes to toServer. To send an allowed call, it must hold
	// sending before it takes the call. A later cancellation of the call then reaches the server after
	// the call.
	sending  sync.Mutex
	toServer io.Writer

	mu     sync.Mutex
	open   map[string]*call  // calls that are not decided yet, by id key (see relay.IDKey)
	sent   map[string]string // the methods of the client's requests that the server has not answered, by id key
	client string            // the name that the client reports
	asked  map[string]int    // how many requests the server has made to the client, by method
	words  map[string]string // the text of the last such request, by method
	gone   bool              // the gate can neither send nor answer a call, because the client or the server is gone
}

// Run passes messages between the client and the server until the server's output ends. If the client
// is gone or ctx ends, Run closes the server's input and withdraws all pending questions. After Run has
// returned, a goroutine may still read the client's output. Run returns an error if it could not read
// the server's output.
func Run(ctx context.Context, client relay.Peer, serverIn io.WriteCloser, serverOut io.Reader, nod Nod, o Options) error {
	if o.Progress <= 0 {
		o.Progress = progressEvery
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := &gate{
		nod: nod, opts: o, tools: newTools(o.Definitions), server: serverIn,
		toClient: relay.NewLineWriter(client.In), toServer: serverIn,
		open: map[string]*call{}, sent: map[string]string{}, asked: map[string]int{}, words: map[string]string{},
	}
	stop := context.AfterFunc(ctx, func() { g.clientGone(context.Cause(ctx)) })
	defer stop()
	go func() {
		_ = relay.EachLine(client.Out, g.fromClient) // an error means that the output has ended
		g.clientGone(errClientGone)
	}()
	err := relay.EachLine(serverOut, g.fromServer)
	g.endAll(errServerGone)
	_ = serverIn.Close() // Close fails if the input is closed already
	g.calls.Wait()
	return err
}

// fromClient handles one line of the client. If the line is a batch, fromClient handles each of its
// messages separately, and each gets its own response.
func (g *gate) fromClient(line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	all, err := split(line)
	for _, raw := range all {
		var m message
		if m, err = parse(raw); err != nil {
			g.refuse(err)
			continue
		}
		g.receive(m)
	}
	if len(all) == 0 {
		g.refuse(err)
	}
	return nil
}

// receive handles one message of the client. It sends the message to the server, unless the message is a
// tools/call. The method run sends those calls that nod allows.
func (g *gate) receive(m message) {
	if m.method == methodCancelled && g.cancel(m) {
		return
	}
	if m.key != "" && m.method != "" && g.refuseReused(m) {
		return
	}
	switch m.method {
	case methodCall:
		g.judge(m)
		return
	case methodInitialize:
		g.noteClient(m.params)
	}
	if m.key != "" && m.method != "" {
		g.mu.Lock()
		g.sent[m.key] = m.method
		g.mu.Unlock()
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	g.send(m.line)
}

// send writes a line to the server. The caller must hold g.sending.
func (g *gate) send(line []byte) {
	if _, err := g.toServer.Write(append(line, '\n')); err != nil { // if the server is gone, its output ends, which ends Run
		g.opts.Log.Debug("mcp gate: the server does not read any more", "error", err)
	}
}

// tell writes a message to the client. If the client no longer reads, the gate treats the client as gone.
func (g *gate) tell(e envelope) {
	line, err := encode(e)
	if err == nil {
		err = g.toClient.WriteLine(line)
	}
	if err != nil {
		g.clientGone(errClientGone)
	}
}

// refuse tells the client that the server does not get a message.
func (g *gate) refuse(err error) {
	why := refusal{code: codeRequest, error: err}
	errors.As(err, &why)
	g.opts.Log.Warn("mcp gate: a message of the client was refused", "reason", err)
	g.tell(failure(why.id, why.code, "nod refused the message: "+err.Error()))
}

// fromServer handles one line of the server. It drops a line that is no message of the protocol, because
// the client could find a message in it that the gate does not see.
func (g *gate) fromServer(line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	all, err := split(line)
	if err != nil {
		g.opts.Log.Warn("mcp gate: a line of the server was dropped", "reason", err)
		return nil
	}
	for _, raw := range all {
		m, err := parse(raw)
		if err != nil {
			g.opts.Log.Warn("mcp gate: a message of the server was dropped", "reason", err)
			continue
		}
		if err := g.note(m); err != nil {
			g.opts.Log.Warn("mcp gate: a response of the server was refused", "reason", err)
			if !errors.Is(err, errUnasked) {
				g.tell(failure(m.id, codeServer, "nod refused the server's response: "+err.Error()))
			}
			continue
		}
		if err := g.toClient.WriteLine(append(m.line, '\n')); err != nil {
			g.clientGone(errClientGone)
		}
	}
	return nil
}

var errUnasked = errors.New("it answers no request that the server has")

// note checks and records a message of the server. If it returns an error, the client must not get the
// message. The server may respond only to requests that it has got and not answered. A client that takes
// the id "1" for 1 could otherwise take a response for that to a call that nod has not decided.
func (g *gate) note(m message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m.method {
	case "":
	case methodSampling, methodElicit:
		g.asked[m.method]++
		g.words[m.method] = wordsOf(m.params)
		g.opts.Log.Info("mcp gate: the server makes a request of its own to the client", "method", m.method)
		return nil
	default:
		return nil
	}
	if m.key == "" && m.result == nil {
		return nil // this error response says that the server could not read the id of a request
	}
	method, sent := g.sent[m.key]
	if !sent {
		return errUnasked
	}
	delete(g.sent, m.key)
	if method == methodList && m.result != nil {
		return g.tools.record(m.result)
	}
	return nil
}

// noteClient stores the name that the client reports, for people.
func (g *gate) noteClient(params json.RawMessage) {
	var p struct{ ClientInfo struct{ Name, Title string } }
	if json.Unmarshal(params, &p) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.client = p.ClientInfo.Title; g.client == "" {
		g.client = p.ClientInfo.Name
	}
}

// clientGone withdraws the pending questions and closes the server's input.
func (g *gate) clientGone(why error) {
	g.endAll(why)
	_ = g.server.Close() // Close fails if the input is closed already
}

// endAll ends all calls that are not decided. The gate then refuses every later call.
func (g *gate) endAll(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	for key, c := range g.open {
		delete(g.open, key)
		c.stop(why)
	}
}
