// Command nod is the whole permission bus for AI agents: the server, the engine,
// the connectors, and the commands for people and scripts.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/hook"
)

// The exit codes of nod ask; nod allow also uses exitOpen. The exit code of any other failure is 1.
const (
	exitOK        = 0
	exitError     = 1
	exitDenied    = 3
	exitTimedOut  = 4
	exitWithdrawn = 5 // the request was withdrawn or cancelled
	exitOpen      = 6 // the request is pending: with --async, or because more people must allow it
)

// globals are the flags that all commands have.
type globals struct {
	NatsURL   string `name:"nats-url" placeholder:"URL,…" help:"NATS servers to use instead of the nod that runs here (NOD_URL)."`
	Creds     string `placeholder:"FILE" type:"path" help:"Key file for those servers (NOD_CREDS)."`
	TokenFile string `name:"oidc-token-file" placeholder:"FILE" type:"path" help:"File with an agent's OIDC token, in place of a key (NOD_TOKEN_FILE; the name is NOD_AGENT)."`
	Data      string `placeholder:"DIR" type:"path" help:"Data directory (NOD_DATA)."`
	Verbose   bool   `short:"v" help:"Log more."`

	VersionFlag versionFlag `name:"version" help:"Print the version."`
}

// cli is the command line: the commands and the flags that all of them have.
type cli struct {
	globals

	Up        upCmd           `cmd:"" group:"run" help:"Run nod: server, engine, terminal and web inbox."`
	Stop      stopCmd         `cmd:"" group:"run" help:"Stop the nod that runs on this machine; pending requests stay pending."`
	Engine    engineCmd       `cmd:"" group:"run" help:"Run an engine alone against NATS servers."`
	Connector connectorCmd    `cmd:"" group:"run" help:"Run a connector alone."`
	Tokens    tokenServiceCmd `cmd:"" name:"token-service" group:"run" help:"Admit agents of CI jobs and pods by their OIDC tokens, in place of keys."`
	Setup     setupCmd        `cmd:"" group:"run" help:"Set nod up on this machine, from checklists."`
	Service   serviceCmd      `cmd:"" group:"run" help:"Have the system run nod from log-in on."`
	Doctor    doctorCmd       `cmd:"" group:"run" help:"Check the whole installation, and say how to fix each problem."`
	Uninstall uninstallCmd    `cmd:"" group:"run" help:"Remove nod's hooks and service from this machine; its data stays."`

	Status     statusCmd     `cmd:"" group:"run" help:"Say whether nod runs and how many requests wait; --short is for status bars."`
	Bench      benchCmd      `cmd:"" group:"run" help:"Measure nod on this machine, beside bare NATS."`
	Completion completionCmd `cmd:"" group:"run" help:"Print a script that completes nod's commands in bash, zsh or fish."`
	Version    versionCmd    `cmd:"" group:"run" help:"Print the version."`
	Help       helpCmd       `cmd:"" group:"run" help:"Explain a command, with examples."`

	Ask      askCmd      `cmd:"" group:"ask" help:"Ask for permission and wait for the decision."`
	Pending  pendingCmd  `cmd:"" group:"answer" help:"List the pending requests."`
	Show     showCmd     `cmd:"" group:"answer" help:"Show one request in full."`
	Inbox    inboxCmd    `cmd:"" group:"answer" help:"Show the pending requests live, and answer them by key."`
	Voice    voiceCmd    `cmd:"" group:"answer" help:"Ask and answer by voice: transcripts in on standard input, sentences to speak out."`
	Allow    allowCmd    `cmd:"" group:"answer" help:"Allow a request."`
	Deny     denyCmd     `cmd:"" group:"answer" help:"Deny a request."`
	Answer   answerCmd   `cmd:"" group:"answer" help:"Answer a question."`
	History  historyCmd  `cmd:"" group:"answer" help:"List and search the decisions, as far back as the log."`
	Sessions sessionsCmd `cmd:"" group:"answer" help:"List the sessions of agents, and how many requests of each wait."`
	Freeze   freezeCmd   `cmd:"" group:"answer" help:"Deny all requests of agents, until nod thaw."`
	Thaw     thawCmd     `cmd:"" group:"answer" help:"End a freeze."`
	Grants   grantsCmd   `cmd:"" group:"answer" help:"List the standing answers: allows and denials that last beyond one call."`
	Revoke   revokeCmd   `cmd:"" group:"answer" help:"End a standing answer: nod asks again."`
	Leave    leaveCmd    `cmd:"" group:"answer" help:"Let a session go on for a time while you are away, within limits."`
	Back     backCmd     `cmd:"" group:"answer" help:"End your leaves, and list the calls that they allowed."`
	Open     openCmd     `cmd:"" group:"answer" help:"Open the web inbox in the browser, logged in."`
	Login    loginCmd    `cmd:"" group:"answer" help:"Print a link that logs a browser in to the web inbox."`

	Install installCmd `cmd:"" group:"agents" help:"Have an agent program, such as Claude Code, ask nod."`
	Grant   grantCmd   `cmd:"" group:"agents" help:"Share a session's permissions with another session of the same agent."`
	Gate    gateCmd    `cmd:"" group:"agents" help:"Check whether a session has the permissions that a scheduled task needs."`
	Hook    hookCmd    `cmd:"" group:"agents" help:"Ask nod about one tool call, as an agent program's hook (the agent program runs this)."`
	MCP     mcpCmd     `cmd:"" name:"mcp" group:"agents" help:"Serve agent programs that speak MCP (they run this, or reach it over HTTP)."`
	ACP     acpCmd     `cmd:"" name:"acp" group:"agents" help:"Run an ACP agent for an editor, and ask nod before its tool calls."`
	HTTP    httpCmd    `cmd:"" name:"http" group:"agents" help:"Let programs and Claude Code's HTTP hooks ask over HTTP."`
	Resume  resumeCmd  `cmd:"" group:"agents" help:"Continue a Claude Code session once its requests are decided."`
	Exec    execCmd    `cmd:"" group:"agents" help:"Run a command confined to a session's permissions."`
	Join    joinCmd    `cmd:"" group:"agents" help:"Ask the nod of another machine, by its invitation."`

	Session        sessionCmd        `cmd:"" group:"operate" help:"Show or change a session's permissions and timeout."`
	Policy         policyCmd         `cmd:"" group:"operate" help:"Check, explain and suggest rules."`
	Settings       settingsCmd       `cmd:"" group:"operate" help:"Apply or show settings.json."`
	Log            logCmd            `cmd:"" group:"operate" help:"Read, export and verify the log of all that happened."`
	Backup         backupCmd         `cmd:"" group:"operate" help:"Copy all stores while nod runs, with its keys and settings."`
	Restore        restoreCmd        `cmd:"" group:"operate" help:"Restore a backup into an empty data directory or to NATS servers."`
	Approvers      approversCmd      `cmd:"" group:"operate" help:"List or remove approvers: the people who may answer."`
	Pair           pairCmd           `cmd:"" group:"operate" help:"Let a person answer on a channel, such as telegram."`
	Invite         inviteCmd         `cmd:"" group:"operate" help:"Print the command that lets another machine's agents ask this nod."`
	Keys           keysCmd           `cmd:"" group:"operate" help:"Make keys and the server configuration for other machines."`
	CodexAppServer codexAppServerCmd `cmd:"" group:"agents" help:"Run Codex's app-server for its client, and ask nod before its tool calls."`
	Opencode       opencodeCmd       `cmd:"" group:"agents" help:"Pass the permission prompts of a running OpenCode on to nod."`
	Kilo           kiloCmd           `cmd:"" group:"agents" help:"Pass the permission prompts of a running Kilo on to nod."`
}

var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "run", Title: "Run:"},
	{Key: "ask", Title: "Ask:"},
	{Key: "answer", Title: "Answer:"},
	{Key: "agents", Title: "Agents:"},
	{Key: "operate", Title: "Operate:"},
})

type env struct {
	ctx            context.Context // the command's context, which ends when the process gets a signal to stop
	stdin          io.Reader
	stdout, stderr io.Writer
	place          bus.Place
	log            *slog.Logger
	args           []string // the command line without the program's name
}

// exit is an error that sets only the exit code. The command has already printed its messages.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// hookLine and execLine are the parts of cli that a hook and nod exec need. They save each tool call of an
// agent the milliseconds in which the parser would read the whole cli.
type hookLine struct {
	globals

	Hook hookCmd `cmd:""`
}

type execLine struct {
	globals

	Exec execCmd `cmd:""`
}

// parserFor returns the parser for a command line, and the global flags that this parser sets.
func parserFor(args []string, stdout, stderr io.Writer, exit func(code int)) (*kong.Kong, *globals, error) {
	command, ownArgs := commandOf(args)
	if slices.Contains(ownArgs, "--help") || slices.Contains(ownArgs, "-h") {
		command = ""
	}
	small := func(line any, g *globals) (*kong.Kong, *globals, error) {
		parser, err := kong.New(line, kong.Name("nod"), kong.Writers(stdout, stderr), kong.Exit(exit))
		return parser, g, err
	}
	switch command {
	case "hook":
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(hookMemory)
		var h hookLine
		return small(&h, &h.globals)
	case "exec":
		debug.SetGCPercent(execGC)
		var x execLine
		return small(&x, &x.globals)
	}
	var c cli
	parser, err := newParser(&c, stdout, stderr, exit)
	return parser, &c.globals, err
}

// commandOf returns the command in a command line, and the arguments before --. It returns "" if a flag
// that is not global comes before the command.
func commandOf(args []string) (command string, own []string) {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		switch {
		case slices.Contains([]string{"--data", "--nats-url", "--creds", "--oidc-token-file"}, name):
			if !hasValue {
				i++
			}
		case name == "-v", name == "--verbose":
		case strings.HasPrefix(name, "-"):
			return "", args
		default:
			return args[i], args
		}
	}
	return "", args
}

// hookMemory is the memory limit of a hook, in bytes. A hook collects garbage only near this limit, and
// most hooks end before they need so much memory.
const hookMemory = 64 << 20

// execGC is the garbage collector's target for nod exec, in percent. The first collection comes at 16
// MB, which most commands do not reach. nod exec has no memory limit, because the list of a large
// project's directories can be long.
const execGC = 400

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help" && !slices.Contains(args, "--help"):
		args = append(slices.Clone(args[1:]), "--help")
	}
	done := -1 // kong's exit code after it has printed help or the version; -1 otherwise
	parser, c, err := parserFor(args, stdout, stderr, func(code int) { done = code })
	if err != nil {
		return fail(stderr, err)
	}
	parsed, err := parser.Parse(args)
	if done >= 0 {
		return done
	}
	if err != nil {
		code := fail(stderr, misuse(err))
		switch {
		case slices.Contains(args, "hook") && slices.Contains(args, hook.TurnsFlag): // no refusal is printed, because Claude Code would take it for the user's next input
			code = hook.Leaves(stdout)
		case slices.Contains(args, "hook"): // a hook must print a refusal on stdout, or the host would run the tool
			code = hook.Refuse(stdout)
		}
		return code
	}
	level := slog.LevelWarn
	if c.Verbose {
		level = slog.LevelDebug
	}
	e := &env{
		ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr,
		args:  args,
		place: bus.Place{URL: c.NatsURL, Creds: c.Creds, TokenFile: c.TokenFile, DataDir: c.Data},
		log:   slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})),
	}
	var code exit
	switch err := parsed.Run(e); {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil: // a signal stopped the command
		return fail(e.stderr, errors.New("stopped before the command was done"))
	default:
		return fail(e.stderr, err)
	}
}

// newParser returns the parser of the command line. The parser calls the function exit after it has printed
// help or the version.
func newParser(c *cli, stdout, stderr io.Writer, exit func(code int)) (*kong.Kong, error) {
	parser, err := kong.New(c, kong.Name("nod"), groups,
		kong.Description("An AI agent asks; a person nods."),
		kong.Writers(stdout, stderr), kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(c))
	if err == nil {
		addExamples(parser.Model.Node)
	}
	return parser, err
}

// misuse adds a hint to a parse error: an example, if an argument or a flag is missing, and the --help
// command to use.
func misuse(err error) error {
	text, read, command := err.Error(), "nod", false
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		if n := parse.Context.Selected(); n != nil {
			read, command = n.FullPath(), n.Leaf()
		}
	}
	if !command {
		text = strings.Replace(text, "unexpected argument", "no such command:", 1)
	}
	if example := exampleOf(read); command && example != "" && (strings.HasPrefix(text, "expected ") || strings.HasPrefix(text, "missing flags")) {
		text += ", as in " + example
	}
	if strings.HasSuffix(text, "?") {
		return fmt.Errorf("%s See %s --help", text, read)
	}
	return fmt.Errorf("%s: see %s --help", text, read)
}

// commandAfter returns the command line of another program, without a leading --. If the first
// argument is a flag, it returns an error, because nod does not have that flag.
func commandAfter(args []string) ([]string, error) {
	switch {
	case len(args) == 0:
		return args, nil
	case args[0] == "--":
		return args[1:], nil
	case strings.HasPrefix(args[0], "-"):
		return nil, fmt.Errorf("unknown flag %s; if it is for another program, write -- before that program's command", args[0])
	}
	return args, nil
}

func fail(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "nod: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	return exitError
}

// callTimeout is the time limit of a command's call to nod.
const callTimeout = 15 * time.Second

func (e *env) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.ctx, callTimeout)
}

// hostAndUser returns the names of this machine and of the user of this process, for the requests of agents. An
// unknown name is empty; allow rules that name a machine then do not apply.
func hostAndUser() (host, name string) {
	host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return host, name
}

func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (e *env) warnOpen(open bool) {
	if open {
		fmt.Fprintln(e.stderr, "nod: warning: this NATS server asks for no credentials, so anyone on it can answer")
	}
}

// helpCmd is the command nod help, which the function run changes into the flag --help.
type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command to explain."`
}

type versionCmd struct{}

func (versionCmd) Run(e *env) error {
	fmt.Fprintln(e.stdout, "nod", version())
	return nil
}

type versionFlag bool

func (versionFlag) BeforeReset(app *kong.Kong) error {
	fmt.Fprintln(app.Stdout, "nod", version())
	app.Exit(exitOK)
	return nil
}

// version returns the module's version from the build, without the leading "v" and without metadata.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasPrefix(info.Main.Version, "v") {
		return "0.0.0-dev"
	}
	v, _, _ := strings.Cut(strings.TrimPrefix(info.Main.Version, "v"), "+")
	return v
}
