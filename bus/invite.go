package bus

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nodbus/nod/bus/roles"
)

// Invitation lets another machine send requests to this nod, under an agent name of its own. It contains
// nod's address, the agent's key, and the certificate of the server's authority. It is a secret.
type Invitation struct {
	URL   string `json:"url"`
	Agent string `json:"agent"`
	Key   string `json:"key,omitempty"`
	CA    string `json:"ca"` // the certificate of the server's authority, in PEM
}

const joinedName = "joined.json"

// Invite makes an agent's key and returns the invitation for another machine. The parameter address
// is the server's address as the other machine sees it. The server accepts the key and uses TLS from
// its next start on.
func Invite(dataDir, agent, address string) (Invitation, error) {
	keys, err := roles.OpenKeys(dataDir)
	if err != nil {
		return Invitation{}, err
	}
	if keys.Operator() {
		return Invitation{}, fmt.Errorf("%s has keys for NATS servers in operator mode: make a key with nod keys add agent-%s, and take its file to the other machine", dataDir, agent)
	}
	id := roles.AgentID(agent)
	if _, err := keys.Add(id); err != nil {
		return Invitation{}, err
	}
	seed, err := os.ReadFile(keys.Path(id))
	if err != nil {
		return Invitation{}, fmt.Errorf("read the key of %s: %w", id, err)
	}
	ca, err := authority(dataDir)
	if err != nil {
		return Invitation{}, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Leaf.Raw})
	return Invitation{URL: "tls://" + address, Agent: agent, Key: strings.TrimSpace(string(seed)), CA: string(cert)}, nil
}

// String returns the invitation as one word, which contains the key.
func (i Invitation) String() string {
	text, _ := json.Marshal(i) // json.Marshal cannot fail on strings
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseInvitation parses a word that String has returned.
func ParseInvitation(word string) (i Invitation, err error) {
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(word))
	if err != nil || json.Unmarshal(text, &i) != nil || i.Key == "" || !i.isComplete() {
		return Invitation{}, errors.New("this is no invitation: paste the whole line that nod invite printed")
	}
	return i, nil
}

// isComplete reports whether the invitation names an agent, the certificate of an authority, and exactly
// one server address with TLS.
func (i *Invitation) isComplete() bool {
	at, err := url.Parse(i.URL)
	return err == nil && at.Scheme == "tls" && at.Host != "" && i.URL == "tls://"+at.Host &&
		i.CA != "" && roles.AgentID(i.Agent).Check() == nil
}

// Join stores the invitation in a data directory, readable by its owner alone. Later calls of the
// functions Join and JoinWait with this directory use the invitation. If the directory has a nod of its
// own, or an invitation already, Join fails and changes nothing.
func (i Invitation) Join(dataDir string) error {
	keys, err := roles.OpenKeys(dataDir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(keys.Path(roles.ID{Role: roles.Engine})); err == nil {
		return fmt.Errorf("%s has a nod of its own: name another directory with --data or NOD_DATA", dataDir)
	}
	path := filepath.Join(dataDir, joinedName)
	joined := fmt.Errorf("%s has joined a nod already: remove %s first", dataDir, path)
	if _, err := os.Stat(path); err == nil {
		return joined
	}
	if err := keys.Put(roles.AgentID(i.Agent), i.Key); err != nil {
		return err
	}
	i.Key = "" // the key is in a file of its own
	text, err := json.Marshal(i)
	if err == nil {
		err = roles.WriteNew(path, append(text, '\n')) // the key was written first, so that every invitation on disk has its key
	}
	if errors.Is(err, fs.ErrExist) {
		return joined // another process has just joined with this directory
	}
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return nil
}

func readInvitation(dataDir string) (*Invitation, error) {
	path := filepath.Join(dataDir, joinedName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil // if the directory cannot be used, the next command that uses it reports that
	}
	if err != nil {
		return nil, fmt.Errorf("read the invitation of this directory: %w", err)
	}
	var i Invitation
	if json.Unmarshal(text, &i) != nil || !i.isComplete() {
		return nil, fmt.Errorf("%s is damaged: remove it, and join again by another invitation", path)
	}
	return &i, nil
}

// Joined returns the address of the nod that invited this machine. The result joined is false if
// there is no invitation, or if p has a URL, because Join then does not use the invitation.
func (p Place) Joined() (url string, joined bool, err error) {
	p, err = p.WithDefaults()
	if err != nil || p.URL != "" {
		return "", false, err
	}
	i, err := readInvitation(p.DataDir)
	if i == nil {
		return "", false, err
	}
	return i.URL, true, nil
}

// Agent returns the default agent name. With a token the name is that in NOD_AGENT. With a URL it is
// that in NOD_AGENT or, if NOD_AGENT is empty, "local". In all other cases it is the name in the data
// directory's invitation or, without an invitation, "local". NOD_AGENT does not choose among the keys
// in the data directory, because anyone who sets a hook's environment could then choose a key.
func (p Place) Agent() (string, error) {
	p, err := p.WithDefaults()
	if err != nil {
		return "", err
	}
	name := os.Getenv("NOD_AGENT")
	if p.TokenFile != "" && name == "" {
		return "", errors.New("a token admits one agent: set NOD_AGENT to its name")
	}
	if p.TokenFile != "" || p.URL != "" {
		return cmp.Or(name, "local"), nil
	}
	i, err := readInvitation(p.DataDir)
	if i == nil {
		return "local", err
	}
	return i.Agent, nil
}
