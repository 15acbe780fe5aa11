package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// embedded is one process nod up, which contains an engine, a server and a Telegram worker.
type embedded struct {
	*site
	up   *process
	port int
}

func newEmbedded(ctx context.Context, dir string, p programs) (*embedded, error) {
	s, err := newSite(dir, p)
	if err != nil {
		return nil, err
	}
	free, err := s.reserve(1)
	if err != nil {
		return nil, err
	}
	e := &embedded{site: s, port: free[0]}
	e.up = &process{
		name: "up", dir: dir, ready: says("nod is up on " + e.urls("")),
		args: []string{p.nod, "up", "-q", "--http", "off", "--listen", fmt.Sprintf("127.0.0.1:%d", e.port)},
		env:  []string{"NOD_DATA=" + dir, "NOD_URL=", "NOD_CREDS="},
	}
	return e, e.begin(ctx, e.up)
}

func (e *embedded) urls(string) string { return fmt.Sprintf("nats://127.0.0.1:%d", e.port) }

func (e *embedded) command(_, key string, args ...string) *exec.Cmd {
	cmd := exec.Command(e.nod, append(args, "--creds", e.key(key))...)
	cmd.Env = append(os.Environ(), "NOD_URL="+e.urls(""), "NOD_DATA="+e.dir)
	return cmd
}
