// Package peopletest is the test suite that every people connector passes. The test of a
// carrier implements Rig for its channel, declares the channel's Features and calls Run.
package peopletest

import (
	"log/slog"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// The user ids of the people on the channel. Ann and Bob are approvers, Mallory is not. The
// ids are numbers, because some channels accept only numbers.
const (
	Ann     = "4711"
	Bob     = "4712"
	Mallory = "6666"
)

// Rig is a channel with Ann, Bob and Mallory on it. Each test of the suite gets a new Rig.
type Rig interface {
	// Open makes a carrier on the channel, as a worker does when it starts. The carrier
	// must not share memory with an earlier carrier.
	Open(log *slog.Logger) people.Carrier

	// Read lists the messages to a user, oldest first, each as it looks now.
	Read(user string) []Message

	// Does makes a user act. If the channel has no such action, it does nothing and
	// returns false.
	Does(user string, act Act) bool

	// Break makes the carrier's next send or edit of a message fail.
	Break(fault Fault)
}

// Message is a prompt, or a reply to an act. A reply that is not a message in the chat, such
// as a toast, has no ID.
type Message struct {
	ID      string
	Text    string
	Choices []Choice
}

// Choice is a button of a message.
type Choice struct {
	Kind  schemas.OptionKind // the kind of the option that the button chooses; empty if the button leads to a further step
	Label string
	Token string // the data that a press sends
}

// Act is an action on a message. Exactly one of Press, Say and Reason is set.
type Act struct {
	Message string
	Of      string // the user in whose chat the message is; empty means the user who acts
	Press   string // presses the button with this token, which may be made up
	Say     string // replies with this text
	Reason  string // denies the request for this reason, with all the steps that the channel needs
}

// Fault is a way in which a channel fails.
type Fault int

// The faults that a test can cause.
const (
	Slow    Fault = iota // the channel asks to wait for SlowFor
	Broken               // the channel replies with an error of its own
	Cut                  // the connection breaks before the call is carried out
	Lost                 // the connection breaks after the call is carried out
	Locked               // the channel refuses the connector's credentials
	Blocked              // the recipient has blocked the connector
)

// SlowFor is the wait that a channel with the fault Slow asks for.
const SlowFor = 7 * time.Second
