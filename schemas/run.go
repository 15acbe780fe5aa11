package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// ContainPossible is the value of Request.Contain for a call that may run contained.
const ContainPossible = "possible"

// Container has the limits of a contained command: its directories and permissions.
type Container struct {
	Dir      string `json:"dir"`                 // the directory in which the command starts
	Project  string `json:"project"`             // the directory that the command may write
	ReadOnly bool   `json:"read_only,omitempty"` // whether the command has no right to write the project
	// Permissions are the granted tags that the command needs beyond the project.
	Permissions []string `json:"permissions,omitempty"`
	Later       Later    `json:"-"`
}

// Equal reports whether two containers set the same limits.
func (c Container) Equal(o Container) bool {
	return c.Dir == o.Dir && c.Project == o.Project && c.ReadOnly == o.ReadOnly && slices.Equal(c.Permissions, o.Permissions) && c.Later == o.Later
}

// ContainedRun describes the only start of a call that runs contained. In a pending record, it
// describes the start that follows if a person allows the call.
type ContainedRun struct {
	Container Container  `json:"container"`
	Words     string     `json:"words"`               // the WordsDigest of the command's words
	Approved  bool       `json:"approved,omitempty"`  // whether a person has allowed this very call, so that it needs no standing permission
	RunID     string     `json:"run_id,omitempty"`    // an id for the start; empty until the command starts
	StartedAt time.Time  `json:"started_at,omitzero"` // the time of the start, in broker time
	Report    *RunReport `json:"report,omitempty"`    // nil until the command has ended
	Later     Later      `json:"-"`
}

// RunReport describes the end of a contained command and what the command did.
type RunReport struct {
	EndedAt  time.Time `json:"ended_at,omitzero"` // the time of the end, in broker time; the engine sets it
	ExitCode int       `json:"exit_code"`
	Refused  []string  `json:"refused,omitempty"` // HOST:PORT of refused connections, and HOST of names that the command looked up in vain
	Changed  []string  `json:"changed,omitempty"` // files of the project that changed, at most MaxChangedFiles
	Changes  int       `json:"changes,omitempty"` // the number of all changed files; Changed may list fewer
	Partial  bool      `json:"partial,omitempty"` // whether some changed files may be missing
	Later    Later     `json:"-"`
}

// The greatest lengths of the lists in a RunReport.
const (
	MaxChangedFiles = 200
	MaxRefusedHosts = 64
)

// MaxRunAge is how long after its decision a contained command may start.
const MaxRunAge = 10 * time.Minute

// Run asks whether the command of an allowed call may now start contained.
type Run struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	PendingID string `json:"pending_id"`
	Words     string `json:"words"` // the WordsDigest of the command's words
	Dir       string `json:"dir"`   // the directory in which the command would start
}

// Key returns the key of the call's record.
func (r *Run) Key() string { return Key(r.SessionID, r.PendingID) }

// Running is the reply to a Run if the command may start. The command may start only once, in the
// container that the reply names.
type Running struct {
	Type      string    `json:"type"`
	RunID     string    `json:"run_id"`
	Container Container `json:"container"`
}

// Ran reports the end of a contained command.
type Ran struct {
	Type      string    `json:"type"`
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	RunID     string    `json:"run_id"`
	Report    RunReport `json:"report"`
}

// Key returns the key of the call's record.
func (r *Ran) Key() string { return Key(r.SessionID, r.PendingID) }

// WordsDigest returns the digest of the words of a command. Commands with different words have
// different digests.
func WordsDigest(words []string) string {
	sum := sha256.New()
	for _, w := range words {
		fmt.Fprintf(sum, "%d:%s", len(w), w)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
