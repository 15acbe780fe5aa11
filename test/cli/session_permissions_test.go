package cli

import (
	"bufio"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A person and a script use all commands for a session's permissions: ask, show, grants, grant, gate and
// revoke.
func TestCommandsForASessionsPermissions(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestASessionsPermissionsAreSetAndShown runs such commands")
	m, dir := rig.NewMachine(t), rig.Tree(t)
	m.StartNod()
	said := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, got := m.Run(args...)
		require.Equal(t, code, got, "nod %v: %s%s", args, stdout, stderr)
		return stdout, stderr
	}

	// The agent requests a permission, and a person grants it.
	asking := m.Command("ask", "--session", "S", "--permission", "@write:"+dir+"/in", "--reason", "to build", "--timeout-minutes", "5")
	errs, err := asking.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, asking.Start())
	line, err := bufio.NewReader(errs).ReadString('\n')
	require.NoError(t, err)
	id := regexp.MustCompile(`nod allow ([a-z0-9]+)`).FindStringSubmatch(line)
	require.Len(t, id, 2, line)
	shown, _ := said(0, "show", id[1])
	require.Contains(t, shown, "@write:"+dir+"/in")
	said(0, "allow", id[1])
	require.NoError(t, asking.Wait())
	out, _ := said(0, "ask", "--session", "S", "--permission", "@read:"+dir+"/in/sub", "--reason", "to read")
	require.Equal(t, "Permission already granted for read access to "+dir+"/in/sub.\n", out)
	out, _ = said(0, "session", "show", "S")
	require.Contains(t, out, "granted  @write:"+dir+"/in, in this session, until it is revoked\n")

	// The session shares its permission with another session. nod gate checks for the permission, and
	// a person revokes it.
	out, _ = said(0, "grants", "--json")
	var grants []schemas.StandingAnswer
	require.NoError(t, json.Unmarshal([]byte(out), &grants))
	require.Len(t, grants, 1)
	_, stderr := said(1, "grant", "--session", "S", "--to", "helper", "--permission", "@write:"+dir, "--reason", "r")
	require.Contains(t, stderr, "You can only grant permissions you already have.")
	_, stderr = said(1, "grant", "--session", "S", "--to", "helper", "--permission", "@write:"+dir+"/in", "--reason", "r")
	require.Contains(t, stderr, "your agent has no session helper")
	said(0, "ask", "--session", "helper", "--tool", "Read", "--input", `{"file_path":"`+dir+`/in/x"}`)
	out, _ = said(0, "grant", "--session", "S", "--to", "helper", "--permission", "@write:"+dir+"/in", "--reason", "r")
	require.Equal(t, "Permission granted to agent helper.\n", out)
	out, stderr = said(0, "gate", "--session", "helper", "--name", "nightly", "--id", "7", "--permission", "@write:"+dir+"/in")
	require.Empty(t, out+stderr)
	out, _ = said(0, "gate", "--session", "helper", "--name", "nightly", "--id", "7", "--permission", "@network", "--json")
	require.JSONEq(t, `{"type":"nod.v1.gate_reply","missing":["@network"]}`, out)
	_, stderr = said(0, "gate", "--session", "helper", "--name", "nightly", "--id", "7", "--permission", "@network")
	require.Contains(t, stderr, "does not hold @network")
	out, _ = said(0, "gate", "--session", "helper", "--name", "nightly", "--id", "7", "--permission", "@write:"+dir+"/in", "--strict")
	require.Contains(t, out, "already granted")
	said(0, "revoke", grants[0].GrantID[:6])
	_, stderr = said(0, "grants")
	require.Contains(t, stderr, "nothing is allowed or denied beyond one call")
	out, _ = said(0, "grants", "--all", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &grants))
	require.Len(t, grants, 2)
	_, stderr = said(1, "revoke", "nosuch")
	require.Contains(t, stderr, "there is no standing answer nosuch")

	// nod gate --strict asks for a missing permission. After a denial it exits with 3, so that a script can
	// leave the task out.
	gate := m.Command("gate", "--session", "helper", "--name", "nightly", "--id", "7", "--permission", "@network", "--strict")
	require.NoError(t, gate.Start())
	said(0, "deny", m.Pending("helper"), "-m", "not at night")
	require.Error(t, gate.Wait())
	require.Equal(t, 3, gate.ProcessState.ExitCode())

	// A permission for one host is requested and granted like any other permission.
	hosts := m.Command("ask", "--session", "H", "--permission", "@network:registry.npmjs.org:443", "--permission", "@network:go.dev:443", "--reason", "to install", "--id", "h1")
	require.NoError(t, hosts.Start())
	require.Eventually(t, func() bool { _, _, code := m.Run("show", "h1", "--session", "H"); return code == 0 }, time.Minute, 50*time.Millisecond)
	said(0, "allow", "h1", "--session", "H")
	require.NoError(t, hosts.Wait())
	out, _ = said(0, "ask", "--session", "H", "--permission", "@network:go.dev:443", "--reason", "again")
	require.Equal(t, "Permission already granted for network access to go.dev:443.\n", out)
	for tag, why := range map[string]string{
		"@network:go.dev":     "@network:<host>:<port>",
		"@network:Go.dev:443": "in lower case",
		"@write:in":           "Path must be absolute",
		"@exec:/bin/sh":       "Permission must be",
	} {
		_, stderr := said(1, "ask", "--session", "H", "--permission", tag, "--reason", "r")
		require.Contains(t, stderr, tag)
		require.Contains(t, stderr, why)
	}
}
