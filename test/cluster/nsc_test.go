package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/test/internal/rig"
)

// The real program nsc signs nod's accounts for the operator of a company. nod does not have the operator's
// seeds. nod runs on the company's server. A revocation comes into force when nsc pushes the account again.
func TestAnotherOperatorSigns(t *testing.T) {
	program := os.Getenv("NOD_TEST_NSC")
	if program == "" {
		t.Skip("NOD_TEST_NSC does not name the nsc command: see CONTRIBUTING.md")
	}
	server, err := natsServer()
	require.NoError(t, err)
	c := &cluster{t: t, dir: t.TempDir(), nod: rig.Binary, server: server, suffix: ".creds"}
	c.urls = fmt.Sprintf("nats://127.0.0.1:%d", testports.Free(t, 1)[0])
	home := t.TempDir()
	require.NoError(t, os.Symlink(program, filepath.Join(home, "nsc")))
	shell := func(script string) string {
		t.Helper()
		p := exec.Command("sh", "-ec", script)
		p.Env = []string{"PATH=" + home + ":" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home, "NSC_NO_GIT_IGNORE=true", "TERM=dumb"}
		out, err := p.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	shell("nsc add operator --name ACME --sys && nsc edit operator --account-jwt-server-url " + c.urls)
	shell("nsc generate config --nats-resolver --sys-account SYS --config-file " + filepath.Join(home, "acme.conf"))
	resolver, err := os.ReadFile(filepath.Join(home, "acme.conf"))
	require.NoError(t, err)
	config := strings.ReplaceAll(string(resolver), "./jwt", filepath.Join(home, "jwt"))
	require.NoError(t, os.WriteFile(c.config(0), fmt.Appendf(nil, "server_name: acme\nlisten: %q\nlog_file: %q\njetstream { store_dir: %q }\n%s",
		strings.TrimPrefix(c.urls, "nats://"), c.log(0), filepath.Join(c.dir, "js"), config), 0o600))
	c.servers = append(c.servers, c.serve(0))

	commands, _ := c.keys("config", "--jwt", "--nsc", filepath.Join(home, "accounts"))
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(c.log(0))
		return err == nil && strings.Contains(string(log), "Server is ready")
	}, 30*time.Second, rig.Tick)
	c.offline("add", "agent-ci")
	shell(commands)
	_, up := c.engine(1)
	require.Contains(t, <-up, "an engine is up")
	c.letsMeAnswer()
	c.allowed("first")

	file := c.copied("agent-ci")
	running := c.connects(file)
	require.Contains(t, c.offline("revoke", "agent-ci"), "nod keys config")
	require.NoError(t, running.Flush(), "no server knows it yet")
	commands, _ = c.keys("config", "--nsc", filepath.Join(home, "accounts"))
	shell(commands)
	require.Eventually(t, running.IsClosed, 30*time.Second, rig.Tick)
	c.refuses(file)
	c.allowed("second")
}

// offline runs nod keys without the address of a server.
func (c *cluster) offline(args ...string) (said string) {
	c.t.Helper()
	p := exec.Command(c.nod, append([]string{"keys", "--data", c.dir}, args...)...)
	p.Env = append(os.Environ(), "NOD_URL=", "NOD_CREDS=")
	out, err := p.CombinedOutput()
	require.NoError(c.t, err, "%s", out)
	return string(out)
}
