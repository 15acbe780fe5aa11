// Package inner is the program of the process between nod and a contained command. This inner process
// is the first process in the command's namespaces. It builds the command's file system, restricts
// itself, starts the command, and passes on signals and the exit status.
//
// nod starts the inner process from its own program file. The function init of this package does the
// work. Go runs that function before it initialises nod's other packages, because this package imports
// only syscall. A contained command therefore starts faster.
package inner

// nod's program acts as the inner process if the environment variable Variable is set and Name is the
// only argument. Control is the file descriptor of the connection to nod.
const (
	Variable = "NOD_CONTAINED"
	Name     = "nod: contained"
	Control  = 3
)

// ProxyPort is the loopback port at which the command reaches the proxy.
const ProxyPort = 61280 // greater than the ports that Linux assigns to programs

// Plan tells the inner process how to build the file system, which restrictions to apply, and which
// command to run.
type Plan struct {
	Namespaces bool   // the process is in new namespaces, and must execute Steps
	ShareNet   bool   // the command shares this machine's network
	Listen     bool   // open the sockets for the proxy and for DNS queries, and send them to nod
	Foreground bool   // make the command the foreground job of the terminal
	Steps      []Step // the steps that build the file system
	Dir        string
	Argv, Env  []string
	Limits     []Limit
	Filter     []byte // the seccomp filter, as an array of struct sock_filter
	Handled    uint64 // the kinds of access to files that Landlock refuses; 0 means none
	Scoped     uint64 // the other kinds of access that Landlock refuses, as the kernel's bits for scopes
	Rules      []Rule // the exceptions from Handled
}

// Rule lets the command access the file at Path or, if it is a directory, everything below it.
type Rule struct {
	Path     string
	Access   uint64
	Dev, Ino uint64 // the device and inode numbers that Path must have
}

type Limit struct {
	Resource int
	Value    uint64
}

// The kinds of steps. Dev and Ino are the device and inode numbers that a file must have.
const (
	StepTmpfs   = iota // mounts an empty tmpfs at Path, with the mount options in Data
	StepDir            // creates a directory
	StepFile           // creates a file with the content Data
	StepLink           // creates a symbolic link to Data
	StepBind           // bind-mounts Source at Path, with the attributes Attr; Dev and Ino are those of Source
	StepCover          // bind-mounts Source, a path in the new file system, at Path; Dev and Ino are those of Path
	StepProc           // mounts /proc for the new process namespace
	StepPts            // mounts a devpts for pseudo-terminals
	StepOverlay        // mounts an overlay over Source at Path; changes go to the directory Data; read-only if no overlay is possible
)

// Step is one step in building the file system.
type Step struct {
	Kind     byte
	Path     string
	Source   string
	Data     string
	Attr     uint64
	Dev, Ino uint64
}

// The kinds of messages on the control connection. The inner process sends the first group, and nod
// sends the second group.
const (
	Failed   = 'E' // the command did not start; Text is the reason, and Value the errno
	NotRun   = 'N' // the kernel could not execute the program; Value is the errno
	Listener = 'L' // the message carries the sockets for the proxy and, if possible, for DNS queries
	Stopped  = 'S' // the signal Value stopped the command
	Ended    = 'X' // the command ended; Value is its wait status

	Signal    = 'K' // send the signal Value to the process group of the command
	TakeInput = 'F' // make the command the foreground job of the terminal
)

// Message is a message on the control connection.
type Message struct {
	Kind  byte
	Value uint32
	Text  string
}

// MessageHead is the length in bytes of a message without its text.
const MessageHead = 7

func (m Message) Encode() []byte {
	if len(m.Text) > 1<<16-1 {
		m.Text = m.Text[:1<<16-1]
	}
	b := []byte{m.Kind, byte(m.Value), byte(m.Value >> 8), byte(m.Value >> 16), byte(m.Value >> 24), byte(len(m.Text)), byte(len(m.Text) >> 8)}
	return append(b, m.Text...)
}

// DecodeHead decodes the first MessageHead bytes of a message. It returns the message without its
// text, and the length of the text.
func DecodeHead(b []byte) (Message, int) {
	v := uint32(b[1]) | uint32(b[2])<<8 | uint32(b[3])<<16 | uint32(b[4])<<24
	return Message{Kind: b[0], Value: v}, int(b[5]) | int(b[6])<<8
}
