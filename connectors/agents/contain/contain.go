// Package contain runs a command that can do no harm outside its project: it sees the system,
// the toolchains and the project, but no secrets; it writes the project, except the files that
// decide what other programs run; and it reaches no network except the granted hosts. The Linux
// kernel enforces this. docs/containment.md lists what holds and what does not.
package contain

import (
	"fmt"
	"os"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain/egress"
)

// Level is the kind of containment that a machine supports.
type Level int

// The levels, from weakest to strongest.
const (
	// None contains nothing. Run never runs a command at this level.
	None Level = iota
	// LandlockAlone is for machines that allow no namespaces. Only parts of the project without
	// secrets and protected names are writable, and there is no network at all, not even
	// loopback. Processes of the same user can be seen.
	LandlockAlone
	// Namespaces holds everything that docs/containment.md lists.
	Namespaces
)

func (l Level) String() string {
	switch l {
	case Namespaces:
		return "namespaces"
	case LandlockAlone:
		return "Landlock alone"
	}
	return "none"
}

// Spec describes a command and what it may use. All paths are absolute.
type Spec struct {
	Project string   // the project's top directory: readable, and writable except for Protected
	Dir     string   // the working directory, in Project; "" means Project
	Command []string // the program, as a path or a name in PATH of Env, and its arguments
	Env     []string // the environment; Run removes variables that may hold secrets

	Read     []string // further readable paths
	Write    []string // further writable paths; Protected applies in them too
	ReadOnly bool     // the project is readable only

	Network    []Endpoint // the hosts that the command may reach; nil means none
	AnyNetwork bool       // the command may use the whole network, and this machine's loopback

	// Secret reports whether a path is a secret by its name. The command finds an empty file or
	// directory in its place. It is called for every path of the project, and must be quick.
	Secret func(path string) bool
	// Protected reports whether a path decides what other programs run, by its name relative to
	// the project. The command can read but not change it. Run protects git's own files itself.
	Protected func(rel string) bool

	// Scratch is a directory that holds the command's /tmp and its changes to the toolchains'
	// caches, for later commands of the same session. "" means that they end with the command.
	Scratch string
	Limits  Limits

	// AllowLandlockAlone lets Run use the weaker level if the machine allows no namespaces.
	// Otherwise Run refuses there.
	AllowLandlockAlone bool

	Stdin, Stdout, Stderr *os.File // nil means this process's
}

// Limits bound what a command may use; zero means no bound.
type Limits struct {
	Memory    uint64        // bytes of private memory of each process
	Processes uint64        // processes and threads at a time
	Time      time.Duration // after this time the command is killed
}

// Endpoint is a host and a port that the proxy connects to.
type Endpoint = egress.Endpoint

// ParseEndpoint reads HOST:PORT.
func ParseEndpoint(s string) (Endpoint, error) { return egress.ParseEndpoint(s) }

// Report says what a contained command did.
type Report struct {
	Level    Level
	ExitCode int           // 128 + N if signal N ended the command
	TimedOut bool          // Limits.Time ended the command
	Refused  []RefusedHost // the connections that the proxy refused
	Changed  []string      // changed files, relative to the project; at most MaxChanged
	Changes  int           // the number of changed files, also those beyond MaxChanged
	Partial  bool          // Changed and Changes may lack some files
	Undone   []string      // protected paths that the command made
	UndoneTo string        // the directory to which Run has moved Undone
	Elapsed  time.Duration
}

// RefusedHost is an endpoint that a command tried to reach in vain.
type RefusedHost = egress.Refusal

// MaxChanged is the number of names in Report.Changed.
const MaxChanged = 200

func refused(format string, args ...any) error {
	return &agents.ExitError{Code: agents.CodeRefused, Err: fmt.Errorf(format, args...)}
}
