// Package roles says who may say what on the bus: the accounts, the roles with
// their exact rights, the keys, and the server configuration made of them.
//
// STORE holds every stream: records, timers, the log, queued prompts. Only
// engines and the owner have users there. EDGE is where agents, connectors and
// engines talk, and has no streams; workers reach their queue through an import.
// The reason for two: a server's own replies, and a micro service's, ignore the
// asker's publish rights. With one account a harmless request whose reply is
// set to a record's subject overwrites the record, and an empty pull whose reply
// is set to $JS.API.STREAM.DELETE.<stream> deletes the stream. OBSERVE is for
// readers of the log and has nothing that could be written.
package roles

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Account is one of the server's accounts: a subject in one does not exist in
// the others.
type Account string

// The accounts.
const (
	Store   Account = "STORE"
	Edge    Account = "EDGE"
	Observe Account = "OBSERVE"
)

// Role is what a key may be used for.
type Role string

// The roles. Inbox connectors (terminal, web) show everything that is pending
// and ask for it; workers take their prompts from a queue.
const (
	Owner       Role = "owner"
	OwnerStore  Role = "owner-store"
	Engine      Role = "engine"
	EngineStore Role = "engine-store"
	Inbox       Role = "inbox"
	Worker      Role = "connector"
	Agent       Role = "agent"
	Observer    Role = "observer"
)

// The inbox connectors: connectors of every other name are workers.
const (
	Terminal = "terminal"
	Web      = "web"
)

// ID is whom a key belongs to. Name tells agents and connectors apart and is
// empty for the other roles.
type ID struct {
	Role Role
	Name string
}

// First are the keys that the first start makes.
func First() []ID {
	return []ID{
		{Role: Owner}, {Role: OwnerStore}, {Role: Engine}, {Role: EngineStore},
		{Role: Inbox, Name: Terminal}, {Role: Agent, Name: "local"},
	}
}

// AgentID is the agent of that name.
func AgentID(name string) ID { return ID{Role: Agent, Name: name} }

// ConnectorID is the connector of that name, in the role that the name implies.
func ConnectorID(name string) ID {
	if name == Terminal || name == Web {
		return ID{Role: Inbox, Name: name}
	}
	return ID{Role: Worker, Name: name}
}

// String is the key's name, as in keys/<name>.nk: "owner", "terminal",
// "agent-local", "connector-telegram".
func (id ID) String() string {
	switch id.Role {
	case Inbox:
		return id.Name
	case Agent, Worker:
		return string(id.Role) + "-" + id.Name
	default:
		return string(id.Role)
	}
}

// ParseID is the reverse of String. It refuses every name that String would
// not have given.
func ParseID(s string) (ID, error) {
	id := ID{Role: Role(s)}
	if name, ok := strings.CutPrefix(s, string(Agent)+"-"); ok {
		id = AgentID(name)
	} else if name, ok := strings.CutPrefix(s, string(Worker)+"-"); ok {
		id = ID{Role: Worker, Name: name}
	} else if s == Terminal || s == Web {
		id = ConnectorID(s)
	}
	return id, id.Check()
}

// Check reports in one line why id can have no key.
func (id ID) Check() error {
	switch id.Role {
	case Owner, OwnerStore, Engine, EngineStore, Observer:
		if id.Name != "" {
			return fmt.Errorf("the role %s has no names, and so no %q", id.Role, id.Name)
		}
		return nil
	case Agent, Worker, Inbox:
	default:
		return fmt.Errorf("no role is called %q: use agent-NAME, connector-NAME, terminal, web, "+
			"observer, owner, owner-store, engine or engine-store", id.Role)
	}
	if !schemas.ValidID(id.Name) {
		return fmt.Errorf("%q cannot name an %s: use 1 to 128 of A-Z, a-z, 0-9, _ and -", id.Name, id.Role)
	}
	if id.Role != Agent && id != ConnectorID(id.Name) {
		return fmt.Errorf("the connector %s has the key %s: only terminal and web are inboxes", id.Name, ConnectorID(id.Name))
	}
	return nil
}

// Account is where id's user lives.
func (id ID) Account() Account {
	switch id.Role {
	case OwnerStore, EngineStore:
		return Store
	case Observer:
		return Observe
	default:
		return Edge
	}
}

// InboxPrefix is the only prefix under which id hears replies: give it to
// nats.CustomInboxPrefix. All begin with "_INBOX.", so that engines may be
// allowed to publish there and need no allow_responses, which no deny limits.
func (id ID) InboxPrefix() string {
	switch id.Role {
	case Inbox, Worker:
		return "_INBOX.connector." + id.Name
	case Agent:
		return "_INBOX.agent." + id.Name
	default:
		return "_INBOX." + string(id.Role)
	}
}

// User is an ID with the public half of its key: all that a server must know.
type User struct {
	ID
	PublicKey string
}
