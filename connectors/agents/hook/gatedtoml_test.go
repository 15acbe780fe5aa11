package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

// gatedTOML are different forms of Codex's config.toml. Each has a server named fs.
var gatedTOML = map[string]string{
	"plain":          "model = \"x\"\n\n[mcp_servers.fs]\ncommand = \"npx\"\nargs = [\"-y\", \"server-fs\"]\n",
	"comments":       "# mine\n[mcp_servers.fs] # files\n# how\ncommand = \"npx\" # start\nargs = [\"-y\", # quiet\n \"server-fs\"] # end\n\n[other]\na = 1 # one\n",
	"windows":        "[mcp_servers.fs]\r\ncommand = 'C:\\bin\\npx'\r\nargs = [\r\n\t'-y',\r\n\t\"server-fs\",\r\n]\r\n",
	"no end":         "[mcp_servers.fs]\nargs = []\ncommand = \"npx\"",
	"no args":        "[mcp_servers.fs]\ncommand = \"npx\"",
	"no args, more":  "[mcp_servers.fs]\n  command = \"npx\" # x\n  startup_timeout_sec = 3\n[[profiles]]\nname = \"a\"\n[[profiles]]\nname = \"b\"\n",
	"env table":      "[mcp_servers.fs]\ncommand = \"npx\"\n[mcp_servers.fs.env]\nTOKEN = \"s\"\n[mcp_servers.fs.tools.read]\napproval_mode = \"approve\"\n",
	"inline env":     "[mcp_servers.fs]\nenv = { \"A\" = \"}\", B = '''x\n''' }\ncommand = \"npx\"\nargs = [ ]\n",
	"dotted":         "[mcp_servers]\nfs.command = \"npx\"\nfs.args = [\n  # first\n  \"-y\", \"a\" ]\n\"my other\".command = \"x\"\n",
	"quoted":         "[mcp_servers.\"fs\"]\n\"command\" = \"\"\"npx\"\"\"\n'args' = [\"a\\tb\", \"]\", '#']\n",
	"dates":          "when = 2024-01-01T00:00:00Z\nn = 1_000\nm = \"\"\"\n[mcp_servers.x]\ncommand = \"y\"\n\"\"\"\n[mcp_servers.fs]\ncommand=\"npx\"\nargs=[\"a\"]#x\n",
	"marked":         "\ufeff[mcp_servers.fs]\ncommand = \"npx\"\n",
	"url":            "[mcp_servers.fs]\nurl = \"https://h/mcp\" # there\n",
	"url, headers":   "[mcp_servers.fs]\n# tickets\nhttp_headers = { \"X-Key\" = \"hunter2\", Authorization = \"Bearer swordfish\" } # secret\nurl = 'https://h/mcp'\ntool_timeout_sec = 9\r\n",
	"url, escapes":   "[mcp_servers.fs]\nurl = \"https://h/mcp\"\nhttp_headers = { A = \"s\", B = \"sword\\u0066ish\", C = 'hunter2' }\n[mcp_servers.other]\nurl = \"https://h\"\nscopes = []\nhttp_headers.A = \"hunter2\"\n[mcp_servers.zip]\ncommand = \"x\"\nenv = { A = \"hunter2\" }\n",
	"url, variables": "[mcp_servers.fs]\nurl = \"https://h/mcp\"\nenv_http_headers = { \"X-Key\" = \"KEY\" }",
	"url, token":     "[mcp_servers]\nfs.url = \"https://h/mcp\"\nfs.bearer_token_env_var = \"TOKEN\"\nfs.enabled = true\n",
}

type codexServer struct {
	Command, URL string
	Args         []string
	Env          map[string]string
	EnvVars      []string `toml:"env_vars"`
}

func tomlServers(t *testing.T, text string) map[string]codexServer {
	var settings struct {
		Servers map[string]codexServer `toml:"mcp_servers"`
	}
	_, err := toml.Decode(text, &settings)
	require.NoError(t, err, text)
	return settings.Servers
}

// An installation puts the gate before each server of a TOML file. An uninstallation restores every
// byte of the file.
func TestTheGateComesAndGoesInTOML(t *testing.T) {
	for name, text := range gatedTOML {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.toml")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			o := hook.InstallOptions{Settings: file, Program: "/opt/nod", Args: []string{"--data", "/d"}}
			change, gated, err := hook.GateServers(o, validServer)
			require.NoError(t, err)
			require.NotEmpty(t, gated)
			is := string(change.After)
			server := tomlServers(t, is)["fs"]
			assert.Equal(t, "/opt/nod", server.Command, is)
			assert.Equal(t, []string{"mcp", "gate", "--data", "/d", "--name", "fs", "--bind"}, server.Args[:7])
			was := tomlServers(t, text)["fs"]
			if was.URL == "" {
				assert.Equal(t, append([]string{"--", was.Command}, was.Args...), server.Args[7:])
			} else {
				assert.Equal(t, []string{"--upstream", "https://h/mcp"}, server.Args[7:9])
			}
			for _, secret := range []string{"hunter2", "swordfish", "sword", "fish"} {
				assert.NotContains(t, change.Diff(), secret)
				assert.NotContains(t, strings.Join(server.Args, " "), secret)
			}
			for _, comment := range []string{"# mine", "# files", "# how", "# start", "# quiet", "# end", "# there", "# secret", "# tickets", "# first"} {
				assert.Equal(t, strings.Count(text, comment), strings.Count(is, comment), comment)
			}
			gateStaysAndGoes(t, o, gated, text)

			// If there is no record of the installation, a server with a command still runs as before.
			require.NoError(t, os.WriteFile(file, []byte(is), 0o600))
			change, err = hook.UngateServers(o, nil)
			if was.URL != "" {
				require.ErrorContains(t, err, "was edited since the installation")
				return
			}
			require.NoError(t, err)
			mended := tomlServers(t, string(change.After))["fs"]
			assert.Equal(t, was.Command, mended.Command)
			assert.Equal(t, strings.Join(was.Args, "\x00"), strings.Join(mended.Args, "\x00"))
		})
	}
}

// The headers for a server with a URL are in the environment of its gate. If a header's value comes
// from an environment variable, it still does.
func TestTheGateCarriesHeadersInTOML(t *testing.T) {
	gate := func(text string) codexServer {
		file := filepath.Join(t.TempDir(), "config.toml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		change, _, err := hook.GateServers(hook.InstallOptions{Settings: file, Program: "/opt/nod"}, validServer)
		require.NoError(t, err)
		return tomlServers(t, string(change.After))["fs"]
	}
	s := gate(gatedTOML["url, headers"])
	assert.Equal(t, map[string]string{"NOD_MCP_HEADERS": "Authorization: Bearer swordfish\nX-Key: hunter2"}, s.Env)
	s = gate(gatedTOML["url, token"])
	assert.Equal(t, []string{"TOKEN"}, s.EnvVars)
	assert.Equal(t, []string{"--bearer-env", "TOKEN"}, s.Args[len(s.Args)-2:])
	s = gate(gatedTOML["url, variables"])
	assert.Equal(t, []string{"KEY"}, s.EnvVars)
	assert.Equal(t, []string{"--header-env", "X-Key=KEY"}, s.Args[len(s.Args)-2:])
}

// If the gate cannot go before a server, the server stays unchanged, and the user gets the reason in
// one line.
func TestAServerThatTheTOMLGateLeavesAlone(t *testing.T) {
	for text, why := range map[string]string{
		"[mcp_servers]\nfs = { command = \"x\" }\n":                                                         "its table stands in one line",
		"[mcp_servers.fs]\nurl = \"https://h/mcp?key=1\"\n":                                                 "put the secret into a header",
		"[mcp_servers.fs]\nurl = \"https://h\"\nscopes = [\"a\"]\n":                                         "no means for its scopes",
		"[mcp_servers.fs]\nurl = \"https://h\"\n[mcp_servers.fs.http_headers]\nA = \"b\"\n":                 "a table of their own",
		"[mcp_servers.fs]\ncommand = \"x\"\nargs = [1]\n":                                                   "not a list of texts",
		"[mcp_servers.fs]\ncommand = \"nod\"\nargs = [\"mcp\"]\n":                                           "it is nod itself",
		"[mcp_servers.fs]\ncommand = \"./evil\"\nargs = [\"mcp\", \"gate\", \"--\", \"x\"]\n":               "another program, ./evil",
		"[mcp_servers.fs]\ncommand = \"x\"\nurl = \"https://h\"\n":                                          "a command and a URL",
		"[mcp_servers.fs]\nenabled = true\n":                                                                "it has no URL",
		"[mcp_servers.fs]\nurl = \"https://h\"\nhttp_headers = { A = \"b\\n\" }\n":                          "cannot be carried",
		"[mcp_servers.fs]\nurl = \"ftp://h\"\n":                                                             "not one of HTTP",
		"[mcp_servers.fs]\nurl = \"https://h\"\nbearer_token_env_var = \"A\"\nenv_http_headers = {B=\"C\"}": "cannot carry",
	} {
		file := filepath.Join(t.TempDir(), "config.toml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		change, gated, err := hook.GateServers(hook.InstallOptions{Settings: file, Program: "/opt/nod"}, validServer)
		require.NoError(t, err, text)
		assert.Empty(t, gated, text)
		assert.Contains(t, change.Note, why)
		assert.NotContains(t, change.Note, "\n")
		assert.False(t, change.Changed())
	}
	for _, text := range []string{"", "a = 1\n", "[mcp_servers]\n", "[mcp_servers.fs\n", "mcp_servers = 1"} {
		file := filepath.Join(t.TempDir(), "config.toml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, _, err := hook.GateServers(hook.InstallOptions{Settings: file, Program: "/opt/nod"}, validServer)
		require.Error(t, err, text)
	}
}

// If the user has edited a server since the installation, an uninstallation removes the gate and keeps
// the edit.
func TestAnEditedTOMLServerLosesTheGateAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(gatedTOML["comments"]), 0o600))
	o := hook.InstallOptions{Settings: file, Program: "/opt/nod"}
	change, gated, err := hook.GateServers(o, validServer)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(change.After), `"server-fs"`, `"server-fs", "/home"`, 1)), 0o600))
	change, err = hook.UngateServers(o, gated)
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(gatedTOML["comments"], `"server-fs"`, `"server-fs", "/home"`, 1), string(change.After))
}
