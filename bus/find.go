package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/nodbus/nod/bus/roles"
)

// Place names a bus. Environment variables replace its empty fields: NOD_URL, NOD_DATA, and either
// NOD_CREDS or NOD_TOKEN_FILE.
type Place struct {
	URL       string // addresses of NATS servers, comma-separated
	Creds     string // the path of a key file
	TokenFile string // the path of a file with an agent's OIDC token, which replaces Creds
	DataDir   string // the data directory of a running nod; its run.json contains the address
}

// WithDefaults returns p with its empty fields filled from the environment. DataDir is never empty:
// without NOD_DATA it is DataHome.
func (p Place) WithDefaults() (Place, error) {
	if p.URL == "" {
		p.URL = os.Getenv("NOD_URL")
	}
	if p.Creds == "" && p.TokenFile == "" {
		p.Creds, p.TokenFile = os.Getenv("NOD_CREDS"), os.Getenv("NOD_TOKEN_FILE")
	}
	if p.DataDir == "" {
		p.DataDir = os.Getenv("NOD_DATA")
	}
	if p.DataDir != "" {
		return p, nil
	}
	var err error
	p.DataDir, err = DataHome()
	return p, err
}

// DataHome returns the default data directory, which is in the user's data home.
func DataHome() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nod"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the data directory: %w: name one with --data or NOD_DATA", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "nod"), nil
	}
	return filepath.Join(home, ".local", "share", "nod"), nil
}

// Join connects to the bus that p names, with the role and name in id. If p.URL is set, Join connects
// to that address with p.Creds. Otherwise, if p.DataDir contains an invitation, Join connects to the
// nod that invited this machine. Otherwise, Join connects to the nod that runs on p.DataDir, with
// p.Creds or with the key of id in that directory, and follows that nod to a new address after a
// restart. An agent connects with p.TokenFile if that is set.
func Join(ctx context.Context, p Place, id roles.ID, log *slog.Logger) (*Conn, error) {
	return JoinWait(ctx, p, id, log, 0)
}

// JoinWait connects as Join does. While no server answers, it tries again, but for no longer than the
// duration wait.
func JoinWait(ctx context.Context, p Place, id roles.ID, log *slog.Logger, wait time.Duration) (*Conn, error) {
	p, err := p.WithDefaults()
	if err != nil {
		return nil, err
	}
	o := Options{URL: p.URL, Creds: p.Creds, Name: "nod " + id.String(), Inbox: id.InboxPrefix(), Wait: wait, Log: log}
	if err := p.withToken(&o, id); err != nil {
		return nil, err
	}
	if o.URL != "" {
		return Connect(ctx, o)
	}
	invited, err := readInvitation(p.DataDir)
	if err != nil {
		return nil, err
	}
	if invited != nil && p.TokenFile != "" {
		return nil, fmt.Errorf("%s has joined the nod at %s by an invitation, which has a key: leave out the token, or name the servers with --nats-url", p.DataDir, invited.URL)
	}
	if invited != nil {
		return joinElsewhere(ctx, o, invited, p.DataDir, id)
	}
	run, err := ReadRun(p.DataDir)
	if err != nil {
		return nil, err
	}
	o.URL, o.follow = run.URL, p.DataDir
	o.trust = func() ([]byte, error) { return os.ReadFile(caPath(p.DataDir)) }
	if o.Creds == "" && o.TokenFile == "" {
		keys, err := roles.OpenKeys(p.DataDir)
		if err != nil {
			return nil, err
		}
		if _, err := keys.User(id); err != nil {
			return nil, err
		}
		o.Creds = keys.Path(id)
	}
	conn, err := Connect(ctx, o)
	if errors.Is(err, ErrNoServer) { // nod was killed and could not remove run.json, and another process now has nod's pid
		err = fmt.Errorf("%w on %s: nothing answers at %s: start it with nod up", ErrNotRunning, p.DataDir, run.URL)
	}
	return conn, err
}

// joinElsewhere connects an agent to the nod that invited this machine. It fails for all other roles.
func joinElsewhere(ctx context.Context, o Options, i *Invitation, dataDir string, id roles.ID) (*Conn, error) {
	if id.Role != roles.Agent {
		return nil, fmt.Errorf("this machine may only ask, as the agent %s of the nod at %s: answer and manage on that machine", i.Agent, i.URL)
	}
	keys, err := roles.OpenKeys(dataDir)
	if err != nil {
		return nil, err
	}
	if _, err := keys.User(id); err != nil {
		return nil, err
	}
	o.URL, o.Creds = i.URL, keys.Path(id)
	o.trust = func() ([]byte, error) { return []byte(i.CA), nil }
	return Connect(ctx, o)
}

// runDialer dials the address that run.json contains at the time of the dial.
type runDialer struct{ dir string }

func (d runDialer) Dial(network, _ string) (net.Conn, error) {
	run, err := ReadRun(d.dir)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(run.URL)
	if err != nil {
		return nil, errors.New("run.json names no address")
	}
	return net.DialTimeout(network, at.Host, 3*time.Second)
}
