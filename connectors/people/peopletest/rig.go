// Package peopletest is the one suite that every connector that reaches people
// passes. A connector's own test makes a Rig of its channel and calls Run.
package peopletest

import (
	"log/slog"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Ann and Bob may answer; Mallory is on the channel and may not. They are user
// ids, of whatever channel: one where ids are numbers takes these.
const (
	Ann     = "4711"
	Bob     = "4712"
	Mallory = "6666"
)

// Rig is a channel with Ann, Bob and Mallory on it. A Rig belongs to one test.
type Rig interface {
	// Open makes a carrier on the channel, as a worker does when it starts. It
	// remembers nothing of an earlier one.
	Open(log *slog.Logger) people.Carrier

	// Read is what somebody has been told so far, oldest first, each as it looks
	// now.
	Read(user string) []Message

	// Does has somebody do something; it is false where the channel has no such
	// thing.
	Does(user string, act Act) bool

	// Break has the channel fail the next time that something is sent.
	Break(fault Fault)
}

// Message is what somebody reads: a prompt, or a word about what they did.
type Message struct {
	ID      string
	Text    string
	Choices []Choice
}

// Choice is something to press.
type Choice struct {
	Kind  schemas.OptionKind // which option it chooses; empty for a step that decides nothing
	Label string
	Token string // what pressing it sends
}

// Act is something that somebody does to a message: press what has a token,
// made up or not, or say something in reply.
type Act struct {
	Message string
	Of      string // whose message it is; empty for their own
	Press   string
	Say     string
}

// Fault is how a channel fails.
type Fault int

// The faults.
const (
	Slow    Fault = iota // it asks to wait SlowFor
	Broken               // it answers with an error of its own
	Cut                  // the connection breaks
	Lost                 // it does as it is told, and the connection breaks
	Locked               // it refuses the connector's credentials
	Blocked              // this person refuses to be reached
)

// SlowFor is how long Slow asks to wait.
const SlowFor = 7 * time.Second
