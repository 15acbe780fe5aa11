// Package inner is the process between nod and a contained command: the first process of the
// command's namespaces. It builds the command's file system, restricts itself, starts the
// command, and passes on signals and the exit status.
//
// nod starts it as a second process of its own program. It does its work in its init function
// and imports only syscall, because then Go runs it before it initialises nod's other packages,
// which take longer than a contained command needs to start.
package inner

// Variable is the environment variable, and Name the only argument, that make nod's program
// become the inner process. Control is the descriptor of the connection to nod.
const (
	Variable = "NOD_CONTAINED"
	Name     = "nod: contained"
	Control  = 3
)

// ProxyPort is the loopback port of the proxy in the command's network namespace.
const ProxyPort = 61280 // above the ports that Linux gives out by itself

// Plan tells the inner process what to do.
type Plan struct {
	Namespaces bool   // the process is in namespaces of its own; Steps apply
	ShareNet   bool   // the command shares this machine's network
	Listen     bool   // listen on a loopback port for the proxy, and send the socket to nod
	Foreground bool   // make the command the terminal's foreground job
	Steps      []Step // how to build the file system
	Dir        string
	Argv, Env  []string
	Limits     []Limit
	Filter     []byte // the seccomp filter: struct sock_filter, as the kernel reads it
	Handled    uint64 // Landlock's access rights that are restricted; 0 means none
	Scoped     uint64 // Landlock's scopes that are restricted
	Rules      []Rule // Landlock's exceptions
}

// Rule lets the command use what lies at or below Path.
type Rule struct {
	Path     string
	Access   uint64
	Dev, Ino uint64 // the file that Path must be
}

// Limit is a resource limit of the command.
type Limit struct {
	Resource int
	Value    uint64
}

// The kinds of steps.
const (
	StepTmpfs   = iota // mounts an empty file system at Path, with the options in Data
	StepDir            // makes a directory
	StepFile           // makes a file with the content Data
	StepLink           // makes a symbolic link to Data
	StepBind           // shows Source at Path, with Attr; Dev and Ino say which file Source must be
	StepCover          // shows Source, a path inside, at Path; Dev and Ino say which file Path must be
	StepProc           // mounts the process information of the new namespace
	StepPts            // mounts pseudo-terminals
	StepOverlay        // shows Source at Path; changes go to the directory Data; falls back to a read-only bind
)

// Step is one step of building the file system.
type Step struct {
	Kind     byte
	Path     string
	Source   string
	Data     string
	Attr     uint64
	Dev, Ino uint64
}

// The kinds of messages on the control connection. The first five come from the inner process.
const (
	Failed   = 'E' // Text says why the command did not start; Value is the errno
	NotRun   = 'N' // the program could not be run; Value is the errno
	Listener = 'L' // comes with the proxy's socket
	Stopped  = 'S' // the command was stopped by the signal Value
	Ended    = 'X' // the command ended with the wait status Value

	Signal    = 'K' // send the signal Value to the command's process group
	TakeInput = 'F' // make the command the terminal's foreground job
)

// Message is a message on the control connection.
type Message struct {
	Kind  byte
	Value uint32
	Text  string
}

// MessageHead is the number of bytes before a message's text.
const MessageHead = 7

// Encode returns the message's bytes.
func (m Message) Encode() []byte {
	if len(m.Text) > 1<<16-1 {
		m.Text = m.Text[:1<<16-1]
	}
	b := []byte{m.Kind, byte(m.Value), byte(m.Value >> 8), byte(m.Value >> 16), byte(m.Value >> 24), byte(len(m.Text)), byte(len(m.Text) >> 8)}
	return append(b, m.Text...)
}

// DecodeHead reads a message's first MessageHead bytes, and returns the length of its text.
func DecodeHead(b []byte) (Message, int) {
	v := uint32(b[1]) | uint32(b[2])<<8 | uint32(b[3])<<16 | uint32(b[4])<<24
	return Message{Kind: b[0], Value: v}, int(b[5]) | int(b[6])<<8
}
