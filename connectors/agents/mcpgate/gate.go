// Package mcpgate is a program that a client starts instead of an MCP server. It passes every message on
// to the server, except that nod decides each tools/call first.
//
// The gate parses each message of the client. It refuses a message that two readers could understand in
// different ways, and writes any other message anew, in one line. A tools/call reaches the server only
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
	// Detach keeps a request pending although the client no longer waits. If a person allows the
	// request, the next identical call of the session is allowed, once.
	Detach(ctx context.Context, sessionID, pendingID, reason string) error
}

// Options configure a gate.
type Options struct {
	// Name is the server's name in rules and prompts. A rule names a call mcp__NAME__TOOL. CheckName
	// tells whether a name is valid.
	Name string
	// Server describes the server to people: its command or its URL.
	Server string
	// Session is the nod session of the calls.
	Session string
	// Host and User are the names of the client's machine and user, for people. Project is the full
	// path of the client's project; empty means unknown.
	Host, User, Project string
	// Definitions is the folder for the definitions of tools with which nod allowed calls. If it is empty,
	// the gate forgets the definitions when it ends, and does not notice changes from before its start.
	Definitions string
	// Waits records that this process waits for a decision.
	Waits agents.Waits
	// Progress is the interval of progress notifications to a client whose call waits; 0 means 20 s.
	Progress time.Duration
	// Log gets failures, and the methods of the requests that the server makes to the client. It never
	// gets the content of a message. nil discards the log.
	Log *slog.Logger
}

const (
	progressEvery  = 20 * time.Second
	firstProgress  = time.Second
	withdrawWithin = 5 * time.Second
)

// The reasons that people read if the gate withdraws a question.
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

	// Hold sending to write to toServer. A goroutine that sends an allowed call holds sending before it
	// takes the call, so that a later cancellation reaches the server after the call.
	sending  sync.Mutex
	toServer io.Writer

	mu     sync.Mutex
	open   map[string]*call  // calls without a decision, by id key (see relay.IDKey)
	sent   map[string]string // methods of the requests that the server has not answered, by id key
	client string            // the client's name for itself
	asked  map[string]int    // the number of the server's requests to the client, by method
	words  map[string]string // the last text in the server's requests to the client, by method
	gone   bool              // the client or the server is gone, so the gate can send or answer no call
}

// Run passes messages between client and server until the server's output ends. When the client is gone
// or ctx ends, Run closes the server's input and withdraws all pending questions. A goroutine may still
// read the client's output after Run has returned. The error is that of reading the server's output.
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

// fromClient handles one line of the client. It handles each message of a batch by itself, and each
// message gets its own response.
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
// tools/call. The method run sends the allowed calls.
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

// send writes a line to the server. The caller must hold sending.
func (g *gate) send(line []byte) {
	if _, err := g.toServer.Write(append(line, '\n')); err != nil { // if the server is gone, its output ends, and so Run ends
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

// refuse tells the client that a message does not reach the server.
func (g *gate) refuse(err error) {
	why := refusal{code: codeRequest, error: err}
	errors.As(err, &why)
	g.opts.Log.Warn("mcp gate: a message of the client was refused", "reason", err)
	g.tell(failure(why.id, why.code, "nod refused the message: "+err.Error()))
}

// fromServer handles one line of the server. It drops a line that is no message of the protocol, because
// the client could read in it a message that the gate has not seen.
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

// note records the messages of the server that concern the gate. If it returns an error, the client must not
// get the message. A response must have the id of a request that the server has not answered. Some clients
// take the id "1" for 1. Such a client could take a response without a request for the response to a call
// that nod has not decided.
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
		return nil // with this error response, the server says that it could not read the id of a request
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

// noteClient stores the client's name for people.
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

// endAll ends all calls without a decision, and makes the gate refuse later ones.
func (g *gate) endAll(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	for key, c := range g.open {
		delete(g.open, key)
		c.stop(why)
	}
}
