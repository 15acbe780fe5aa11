package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/mcpgate"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

type mcpGateCmd struct {
	Name     string `placeholder:"NAME" help:"The server's name in rules, such as fs for mcp__fs__read_file (by default made from its command)."`
	Bind     bool   `help:"Add a hash of the server's command or URL to the name, so that a rule covers no other server of this name (nod install mcp-gate writes this)."`
	Upstream string `placeholder:"URL" help:"Reach the server at this URL by streamable HTTP, in place of a command. NOD_MCP_HEADERS holds its HTTP headers, one a line, such as Authorization: Bearer TOKEN."`
	// BearerEnv and HeaderEnv name environment variables, as Codex's settings do.
	BearerEnv string            `name:"bearer-env" placeholder:"VARIABLE" help:"With --upstream: the environment variable with the token for the header Authorization."`
	HeaderEnv map[string]string `name:"header-env" mapsep:"," placeholder:"HEADER=VARIABLE" help:"With --upstream: a header and the environment variable with its value."`
	Session   string            `placeholder:"S" help:"The session of the calls (a new one)."`
	Project   string            `placeholder:"DIR" type:"path" help:"The project that the client works in (the current directory)."`
	Command   []string          `arg:"" optional:"" passthrough:"" placeholder:"SERVER" help:"The server and its arguments, after --."`
}

// Help returns the text that nod mcp gate --help shows besides the flags.
func (mcpGateCmd) Help() string {
	return "An MCP client starts this in place of its server. Everything passes but calls of tools, which nod decides first. The exit code is the server's."
}

// Run passes messages between the client and the server until either of them ends. While nod does not
// run, every tool call is refused.
func (c *mcpGateCmd) Run(e *env) error {
	args, err := c.server()
	if err != nil {
		return err
	}
	o, err := c.options(e, args)
	if err != nil {
		return err
	}
	header, err := c.headers()
	if err != nil {
		return err
	}
	late := &lateNod{e: e, turn: make(chan struct{}, 1)}
	defer late.close()
	ctx, stop := hook.Lifetime(e.ctx, os.Stdout)
	defer stop()
	pass := func(in io.WriteCloser, out io.Reader) {
		// An error means that the server's output has ended.
		_ = mcpgate.Run(ctx, relay.Peer{In: e.stdout, Out: e.stdin}, in, out, late, o)
	}
	if c.Upstream != "" {
		(&mcpgate.Upstream{URL: c.Upstream, Header: header, Log: e.log}).Run(ctx, pass)
		return nil
	}
	code, err := relay.Program{Role: "the MCP server", Args: args, Stderr: e.stderr}.Run(ctx, pass)
	if err != nil {
		return err
	}
	if code != exitOK {
		return exit(code)
	}
	return nil
}

// server returns the server's command line. It returns an error unless exactly one of a command and a
// URL is given.
func (c *mcpGateCmd) server() ([]string, error) {
	args, err := commandAfter(c.Command)
	switch {
	case err != nil:
		return nil, err
	case c.Upstream == "" && len(args) == 0:
		return nil, errors.New("name the MCP server's command after --, or its URL with --upstream")
	case c.Upstream != "" && len(args) > 0:
		return nil, errors.New("give either a command or --upstream")
	case c.Upstream != "":
		return nil, mcpgate.CheckURL(c.Upstream)
	}
	return args, nil
}

func (c *mcpGateCmd) options(e *env, args []string) (o mcpgate.Options, err error) {
	o = mcpgate.Options{Name: c.Name, Server: schemas.ShellLine(args), Session: c.Session, Project: c.Project, Waits: e.waits(false), Log: e.log}
	if u, err := url.Parse(c.Upstream); err == nil && c.Upstream != "" {
		o.Server = u.Scheme + "://" + u.Host + u.Path // the query may contain a key
	}
	switch {
	case o.Name == "":
		o.Name = gateName(c.Upstream, args)
	case c.Bind:
		o.Name += "-" + serverHash(c.Upstream, args)
	}
	if o.Session == "" {
		o.Session = "mcp-gate-" + agents.NewID()
	}
	if !schemas.ValidID(o.Session) {
		return o, fmt.Errorf("--session %q is no id: use 1 to 128 letters, digits, _ or -", o.Session)
	}
	if err := mcpgate.CheckName(o.Name); err != nil {
		return o, fmt.Errorf("--name: %w", err)
	}
	dir, err := e.dataDir()
	if err != nil {
		return o, err
	}
	o.Definitions = filepath.Join(dir, "mcp-gate", o.Name)
	o.Host, o.User = hostAndUser()
	if o.Project == "" {
		o.Project, _ = os.Getwd() // without a known directory, the project stays empty
	}
	return o, nil
}

// gateName returns a name for a server without a name. Different servers get different names, so that a
// rule for one server covers no other.
func gateName(upstream string, args []string) string {
	var text string
	if len(args) > 0 {
		text = filepath.Base(args[0])
	} else if u, err := url.Parse(upstream); err == nil {
		text = u.Hostname()
	}
	clean := strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z') {
			return r
		}
		return '-'
	}, text), "-.")
	return strings.TrimPrefix(clean[:min(len(clean), 60)]+"-"+serverHash(upstream, args), "-")
}

// serverHash returns eight hex digits that differ for different servers.
func serverHash(upstream string, args []string) string {
	sum := sha256.Sum256([]byte(upstream + "\x00" + strings.Join(args, "\x00")))
	return hex.EncodeToString(sum[:4])
}

func (c *mcpGateCmd) headers() (http.Header, error) {
	h, err := headers(os.Getenv(hook.HeadersVariable))
	if err != nil {
		return nil, err
	}
	if c.Upstream == "" && (c.BearerEnv != "" || len(c.HeaderEnv) > 0) {
		return nil, errors.New("--bearer-env and --header-env are for --upstream: a command takes its own variables")
	}
	value := func(flag, variable string) (string, error) {
		v := strings.TrimSpace(os.Getenv(variable))
		if v == "" || strings.ContainsAny(v, "\r\n") {
			return "", fmt.Errorf("%s: the environment variable %s has no value that a header can carry: set it where the client starts nod", flag, variable)
		}
		return v, nil
	}
	if c.BearerEnv != "" {
		token, err := value("--bearer-env", c.BearerEnv)
		if err != nil {
			return nil, err
		}
		h.Set("Authorization", "Bearer "+token)
	}
	for name, variable := range c.HeaderEnv {
		v, err := value("--header-env", variable)
		if err != nil {
			return nil, err
		}
		h.Set(name, v)
	}
	return h, nil
}

// headers parses HTTP headers, one per line.
func headers(text string) (http.Header, error) {
	h := http.Header{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("%s: a line is not of the form NAME: VALUE", hook.HeadersVariable)
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return h, nil
}
