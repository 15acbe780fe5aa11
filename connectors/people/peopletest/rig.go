// Package peopletest is the test suite for people connectors. To use it, the test of a carrier
// implements Rig for its channel, declares the channel's Features, and calls Run.
package peopletest

import (
	"log/slog"
	"strings"
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
	// Open creates a carrier on the channel, as a worker does when it starts. The carrier must not
	// share memory with earlier carriers.
	Open(log *slog.Logger) people.Carrier

	// Read lists the messages to a user, oldest first, in their present state.
	Read(user string) []Message

	// Does makes a user act. If the channel does not have this action, Does has no effect and returns
	// false.
	Does(user string, act Act) bool

	// Break makes the carrier's next attempt to send or edit a message fail with this fault.
	Break(fault Fault)
}

// Listening is a Rig of a channel with the feature Unkept. Such a channel drops answers while no carrier
// is connected, so the suite must know whether a carrier is connected.
type Listening interface {
	// Connected returns the number of carriers that are connected to the channel.
	Connected() int
}

// Message is a prompt, or the reply to an act. A reply outside the chat, such as a toast, has no ID.
type Message struct {
	ID      string
	Text    string
	Choices []Choice
}

// Choice is a button of a message.
type Choice struct {
	Kind  schemas.OptionKind // the kind of option that the button chooses; empty if the button leads to another step
	Label string
	Token string // the data that a press of the button sends
}

// Act is an action on a message. Exactly one of Press, Say and Reason is set.
type Act struct {
	Message string
	Of      string // the owner of the chat with the message; empty means the user who acts
	Press   string // if set, the user presses a button with this token, which may be invented
	Say     string // if set, the user replies with this text
	Reason  string // if set, the user denies the request with this reason, in as many steps as the channel needs
}

type Fault int

// The faults that the suite causes.
const (
	Slow    Fault = iota // the channel asks the worker to wait for SlowFor
	Broken               // the channel replies with an error
	Cut                  // the connection breaks before the channel executes the call
	Lost                 // the connection breaks after the channel has executed the call
	Locked               // the channel refuses the connector's credentials
	Blocked              // the recipient has blocked the connector
)

// SlowFor is how long a channel with the fault Slow asks the worker to wait.
const SlowFor = 7 * time.Second

// KindOf returns the kind of option that a button of a chat chooses, by the button's label. If the
// button only leads to another step, it returns "".
func KindOf(label string) schemas.OptionKind {
	for prefix, kind := range map[string]schemas.OptionKind{
		"✅ Allow once": schemas.AllowOnce, "✅ Allow, agent remembers": schemas.AllowAlways, "⛔ Deny, agent remembers": schemas.RejectAlways,
	} {
		if strings.HasPrefix(label, prefix) {
			return kind
		}
	}
	if label == "⛔ Deny" {
		return schemas.RejectOnce
	}
	return ""
}
