// Package contain runs a command so that it cannot do harm outside its project. The command sees
// the system, the toolchains and the project, but no secrets. It can write the project, except for
// files that make other programs run something later, such as git hooks. It reaches only the
// granted hosts. The Linux kernel enforces this. docs/containment.md lists the guarantees and their
// limits.
package contain

import (
	"errors"
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
	// None is no containment. If the machine supports only None, Run refuses every command.
	None Level = iota
	// LandlockAlone is for machines that do not allow namespaces. The command cannot create files
	// in a directory of the project that contains secrets or protected names at any depth. The
	// command has no network, not even loopback. It can see other processes of its user.
	LandlockAlone
	// Namespaces gives all guarantees in docs/containment.md.
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

// Spec describes a command, and the files and hosts that it may use. All paths are absolute.
type Spec struct {
	Project string   // the project's root directory; the command may read it, and may write it except for Protected
	Dir     string   // the working directory, in Project; "" means Project
	Command []string // the program, as a path or a name in PATH of Env, and its arguments
	Env     []string // the environment; Run removes variables that may hold secrets

	Read     []string // further readable paths
	Write    []string // further writable paths; Protected applies to them too
	ReadOnly bool     // the command must not write the project

	Network    []Endpoint // the hosts that the command may reach; nil means none
	AnyNetwork bool       // the command may use this machine's whole network, including its loopback

	// Secret reports whether a path is a secret by its name. The command sees an empty file or
	// directory instead of the secret. Run calls Secret for every path of the project, so it must be
	// fast.
	Secret func(path string) bool
	// SecretBelow reports whether the path of a directory ends like the beginning of a secret's name.
	// For example, a path that ends in .docker does, because .docker/config.json is a secret. If a
	// symbolic link with such a path leads to a directory, the command sees an empty directory instead.
	// If SecretBelow is nil, no path ends so.
	SecretBelow func(dir string) bool
	// Protected reports whether other programs later obey a file. An example is a file with an editor's
	// tasks. rel is the file's path relative to the project. The command can read the file but not
	// change it. Run protects git's files even if Protected does not report them.
	Protected func(rel string) bool

	// Scratch is the directory in which the command's /tmp and its changes to the toolchains'
	// caches stay for later commands of the session. If Scratch is "", Run removes /tmp and
	// these changes when the command ends.
	Scratch string
	Limits  Limits

	// Note stores a note, so that ReviewKilled can review the command's changes if nod is killed before
	// Run has done so. Run calls Note before the command starts, and calls over after its own review. If
	// linger is true, other commands still get the note from Recent for some time after over. If Note
	// fails, Run does not start the command. If Note is nil and nod is killed, the command's new
	// protected files remain.
	Note func(note []byte, linger bool) (over func(), err error)
	// Recent returns the notes of all running commands, and of the commands that ended while this Run
	// searched the project for secrets. A file may be secret only because a link such as .env leads to
	// it. If another command has removed the link, Run finds the link in that command's note. If Recent
	// fails, Run does not start the command. If Recent is nil, Run uses no notes of other commands.
	Recent func() (notes [][]byte, err error)

	// ReviewEvery is the time between reviews of the command's changes while the command runs; 0 means
	// DefaultReviewEvery. Run undoes a change only if two reviews in a row have found it, because
	// programs such as git clone make protected files for a moment.
	ReviewEvery time.Duration

	// AllowLandlockAlone lets Run use the level LandlockAlone on a machine that does not allow
	// namespaces. If AllowLandlockAlone is false, Run refuses the command on such a machine.
	AllowLandlockAlone bool

	Stdin, Stdout, Stderr *os.File // nil means the standard stream of this process
}

// DefaultReviewEvery is the default of Spec.ReviewEvery. It is no shorter, because a review costs
// time: in a project with 10,000 directories, 15 ms, or 75 ms if the command has changed all
// directories. In larger projects, the time between reviews is up to six times as long.
const DefaultReviewEvery = 5 * time.Second

// Limits are the resources that a command may use; zero means no limit.
type Limits struct {
	Memory    uint64        // bytes of private memory for each process
	Processes uint64        // processes and threads at the same time
	Time      time.Duration // Run kills the command after this time
}

// Endpoint is a host and a port that the proxy connects to.
type Endpoint = egress.Endpoint

// ParseEndpoint reads HOST:PORT.
func ParseEndpoint(s string) (Endpoint, error) { return egress.ParseEndpoint(s) }

// ErrDamaged means that nod cannot review the changes of a command, because a power cut or a disk
// fault has damaged the command's note.
var ErrDamaged = errors.New("the note of a contained command is damaged")

// Report lists the files that a contained command changed, and the accesses that nod refused it.
type Report struct {
	Level    Level
	ExitCode int           // 128 + N if signal N ended the command
	TimedOut bool          // Run killed the command after Limits.Time
	Refused  []RefusedHost // the hosts to which the proxy refused to connect
	LookedUp []string      // the host names that the command looked up without the proxy, which always fails
	Changed  []string      // changed files, relative to the project, at most MaxChanged of them
	Changes  int           // the number of all changed files, which may exceed MaxChanged
	Partial  bool          // Changed may lack some files, and Changes may not count them
	Undone   []string      // protected paths that the command created; Run moved them to UndoneTo or removed them
	UndoneTo string        // the directory to which Run moved the paths in Undone
	Elapsed  time.Duration
}

// RefusedHost is a host to which the proxy did not connect the command.
type RefusedHost = egress.Refusal

// MaxChanged is the largest number of names in Report.Changed.
const MaxChanged = 200

func refused(format string, args ...any) error {
	return &agents.ExitError{Code: agents.CodeRefused, Err: fmt.Errorf(format, args...)}
}
