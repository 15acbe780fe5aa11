// Package roles defines the rights on the bus: the accounts, the roles with their exact
// rights, the keys, and the server configuration made from them.
//
// The account STORE has all streams: records, timers, the log, queued prompts. Only engines
// and the owner have users there. Agents, connectors and engines exchange messages in EDGE,
// which has no streams; workers reach their queue through an import. STORE and EDGE are
// separate because the server and micro services send a reply to any reply subject, even one
// to which the requester may not publish. With one account, a harmless request with a
// record's subject as its reply subject would overwrite the record, and an empty pull with
// $JS.API.STREAM.DELETE.<stream> as its reply subject would delete the stream. OBSERVE is
// for readers of the log; they can write nothing.
package roles

import (
	"fmt"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// Account is one of the server's accounts. Users of one account cannot reach subjects of
// another, except through imports.
type Account string

// The accounts; the package comment describes the purpose of each.
const (
	Store   Account = "STORE"
	Edge    Account = "EDGE"
	Observe Account = "OBSERVE"
)

// Role is the purpose of a key.
type Role string

// The roles. Inbox connectors (terminal, web) query for all pending requests and show
// them; workers take their prompts from a queue.
const (
	Owner            Role = "owner"
	OwnerStore       Role = "owner-store"
	Engine           Role = "engine"
	EngineStore      Role = "engine-store"
	Inbox            Role = "inbox"
	CarrierConnector Role = "connector"
	Agent            Role = "agent"
	Observer         Role = "observer"
)

// The names of the inbox connectors. Connectors of every other name have workers.
const (
	Terminal = "terminal"
	Web      = "web"
)

// ID identifies a key: its role, and for agents and connectors their name.
type ID struct {
	Role Role
	Name string
}

// First returns the IDs whose keys the first start makes.
func First() []ID {
	return []ID{
		{Role: Owner}, {Role: OwnerStore}, {Role: Engine}, {Role: EngineStore},
		{Role: Inbox, Name: Terminal}, {Role: Agent, Name: "local"},
	}
}

// AgentID returns the ID of the agent with this name.
func AgentID(name string) ID { return ID{Role: Agent, Name: name} }

// ConnectorID returns the ID of the connector with this name. Its role is Inbox for
// terminal and web, and CarrierConnector for every other name.
func ConnectorID(name string) ID {
	if name == Terminal || name == Web {
		return ID{Role: Inbox, Name: name}
	}
	return ID{Role: CarrierConnector, Name: name}
}

// String returns the key's name, as in keys/<name>.nk: "owner", "terminal",
// "agent-local", "connector-telegram".
func (id ID) String() string {
	switch id.Role {
	case Inbox:
		return id.Name
	case Agent, CarrierConnector:
		return string(id.Role) + "-" + id.Name
	default:
		return string(id.Role)
	}
}

// ParseID is the reverse of String. It refuses every name that String cannot return.
func ParseID(s string) (ID, error) {
	id := ID{Role: Role(s)}
	if name, ok := strings.CutPrefix(s, string(Agent)+"-"); ok {
		id = AgentID(name)
	} else if name, ok := strings.CutPrefix(s, string(CarrierConnector)+"-"); ok {
		id = ID{Role: CarrierConnector, Name: name}
	} else if s == Terminal || s == Web {
		id = ConnectorID(s)
	}
	return id, id.Check()
}

// Check returns a one-line error if id is not valid, such as a name that its role does
// not allow.
func (id ID) Check() error {
	switch id.Role {
	case Owner, OwnerStore, Engine, EngineStore, Observer:
		if id.Name != "" {
			return fmt.Errorf("the role %s takes no name, such as %q", id.Role, id.Name)
		}
		return nil
	case Agent, CarrierConnector, Inbox:
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

// Account returns the account of id's user.
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

// InboxPrefix returns the only prefix under which id may receive replies; pass it to
// nats.CustomInboxPrefix. All prefixes start with "_INBOX.", so that the right to publish
// there lets an engine reply. Engines do not use allow_responses, because no deny rule
// limits it.
func (id ID) InboxPrefix() string {
	switch id.Role {
	case Inbox, CarrierConnector:
		return "_INBOX.connector." + id.Name
	case Agent:
		return "_INBOX.agent." + id.Name
	default:
		return "_INBOX." + string(id.Role)
	}
}

// User is an ID with the public half of its key. A server needs no more.
type User struct {
	ID
	PublicKey string
}
