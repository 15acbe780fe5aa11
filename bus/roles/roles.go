// Package roles defines the rights on the bus: the accounts, the roles with their exact rights,
// the keys, and the server configuration made from them.
//
// The account STORE has all streams: records, timers, the log, queued prompts. Only engines and
// nod's owner have users there. Agents, connectors and engines exchange messages in the account
// EDGE, which has no streams; workers use their queue through an import.
//
// STORE and EDGE are separate because the server and micro services reply to any reply
// subject, even one on which the requester has no right to publish. In a common account, a
// harmless request with a record's subject as its reply subject would overwrite the record,
// and an empty pull with $JS.API.STREAM.DELETE.<stream> as its reply subject would delete the
// stream. The account OBSERVE is for observers, who can write nothing. The account TOKENS has
// only the token service, which admits agents by their tokens; see Config.
package roles

import (
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Account is one of the server's accounts. A user can use subjects of another account only through an
// import.
type Account string

const (
	Store   Account = "STORE"
	Edge    Account = "EDGE"
	Observe Account = "OBSERVE"
	Tokens  Account = "TOKENS"
)

// Role is the purpose of a key.
type Role string

// The roles of keys. Inbox connectors (terminal, web) query and show all pending requests. The role
// of workers is CarrierConnector; they take prompts from a queue.
const (
	Owner            Role = "owner"
	OwnerStore       Role = "owner-store"
	Engine           Role = "engine"
	EngineStore      Role = "engine-store"
	Inbox            Role = "inbox"
	CarrierConnector Role = "connector"
	Agent            Role = "agent"
	Observer         Role = "observer"
	TokenService     Role = "token-service"
)

// The names of the inbox connectors. Only connectors with other names have workers.
const (
	Terminal = "terminal"
	Web      = "web"
)

// ID identifies a key by its role and, for agents and connectors, by the name of the agent or connector.
type ID struct {
	Role Role
	Name string
}

// First returns the IDs of the keys that nod makes at its first start.
func First() []ID {
	return []ID{
		{Role: Owner}, {Role: OwnerStore}, {Role: Engine}, {Role: EngineStore},
		{Role: Inbox, Name: Terminal}, {Role: Agent, Name: "local"},
	}
}

// AgentID returns the ID of the agent with this name.
func AgentID(name string) ID { return ID{Role: Agent, Name: name} }

// ConnectorID returns the ID of the connector with this name. Its role is Inbox for terminal and web, and
// CarrierConnector for all others.
func ConnectorID(name string) ID {
	if name == Terminal || name == Web {
		return ID{Role: Inbox, Name: name}
	}
	return ID{Role: CarrierConnector, Name: name}
}

// String returns the name of the key's file without the suffix, for example "owner", "terminal",
// "agent-local" or "connector-telegram".
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

// ParseID is the inverse of String. It refuses every text that String cannot return.
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

// Check returns a one-line error if the ID is not valid, for example because the role does not allow
// the name.
func (id ID) Check() error {
	switch id.Role {
	case Owner, OwnerStore, Engine, EngineStore, Observer, TokenService:
		if id.Name != "" {
			return fmt.Errorf("the role %s takes no name, such as %q", id.Role, id.Name)
		}
		return nil
	case Agent, CarrierConnector, Inbox:
	default:
		return fmt.Errorf("no role is called %q: use agent-NAME, connector-NAME, terminal, web, "+
			"observer, token-service, owner, owner-store, engine or engine-store", id.Role)
	}
	if !schemas.ValidID(id.Name) {
		return fmt.Errorf("%q cannot name an %s: use 1 to 128 of A-Z, a-z, 0-9, _ and -", id.Name, id.Role)
	}
	if id.Role != Agent && id.Name == ObserverName {
		return fmt.Errorf("no connector may be called %s, which is the name of observers: choose another", id.Name)
	}
	if id.Role != Agent && id != ConnectorID(id.Name) {
		return fmt.Errorf("the connector %s has the key %s: only terminal and web are inboxes", id.Name, ConnectorID(id.Name))
	}
	return nil
}

// Account returns the account to which the user with this ID belongs.
func (id ID) Account() Account {
	switch id.Role {
	case OwnerStore, EngineStore:
		return Store
	case Observer:
		return Observe
	case TokenService:
		return Tokens
	default:
		return Edge
	}
}

// InboxPrefix returns the only prefix under which the user with this ID may receive replies. It is
// for nats.CustomInboxPrefix. All prefixes begin with "_INBOX.", on which engines may publish.
// Engines do not use allow_responses, because no deny rule limits that right.
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

// User is an ID with the public half of its key. An ID has several users while a replaced key is still
// accepted.
type User struct {
	ID
	PublicKey string
	Until     time.Time // when the server stops accepting a replaced key; zero for the current key
	Admits    Admits    // the public halves of the token service's AdmitKeys; zero for all other roles
}
