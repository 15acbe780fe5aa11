package hook_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

func validServer(name string) error {
	if strings.ContainsAny(name, " ") {
		return errors.New("a blank")
	}
	return nil
}

// gatedFiles are settings of several clients, with MCP servers in different forms.
var gatedFiles = map[string]string{
	"Claude Code":       "{\n  \"mcpServers\": {\n    \"fs\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"server-fs\", \"/srv\"],\n      \"env\": {\"A\": \"b\"}\n    }\n  }\n}\n",
	"one line":          `{"mcpServers":{"fs":{"command":"npx","args":["-y","server-fs"]}},"x":1}`,
	"no args":           `{"mcpServers":{"fs":{"command":"server-fs"}}}`,
	"no args, in lines": "{\n\t\"mcpServers\": {\n\t\t\"fs\": {\n\t\t\t\"command\": \"server-fs\"\n\t\t}\n\t}\n}\n",
	"empty args":        "{\r\n  \"mcpServers\": {\"fs\": {\"args\": [ ], \"command\": \"server-fs\"}}\r\n}\r\n",
	"args in lines":     "{\"mcpServers\": {\"fs\": {\"command\": \"npx\", \"args\": [\n  // quiet\n  \"-y\",\n  \"--\", \"server-fs\",\n]}}}",
	"VS Code":           "{\n  // my servers\n  \"servers\": {\"my fs\": {\"type\": \"stdio\", \"command\": \"uvx\", \"args\": [\"fs\"]},},\n}",
	"projects":          `{"projects":{"/a/b":{"mcpServers":{"fs":{"command":"npx","args":["x"]}}},"/c":{}},"mcpServers":{"other":{"command":"y"}}}`,
	"url":               "{\n  \"mcpServers\": {\n    \"fs\": {\n      \"type\": \"http\", // by HTTP\n      \"url\": \"https://h/mcp\",\n      \"headers\": { \"Authorization\": \"Bearer swordfish\" }\n    }\n  }\n}",
	"url, one line":     `{"mcpServers":{"fs":{"httpUrl":"https://h/mcp","headers":{"A":"b","X-Key":"${KEY}"}}}}`,
	"escapes":           `{"mcpServers":{"f\u0073":{"command":"n\u0070x","args":["\u00e9"]}}}`,
}

// GateServers puts the gate before each server, and UngateServers restores the file byte for byte.
func TestTheGateComesAndGoes(t *testing.T) {
	for name, text := range gatedFiles {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "mcp.json")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
			o := hook.InstallOptions{Settings: file, Program: "/opt/nod", Args: []string{"--data", "/d"}}
			change, gated, err := hook.GateServers(o, validServer)
			require.NoError(t, err)
			require.NotEmpty(t, gated)
			assert.Empty(t, change.Note)
			is := string(change.After)
			assert.NotContains(t, change.Diff(), "swordfish")
			assert.Equal(t, len(gated), strings.Count(is, `"/opt/nod"`), is)
			gateStaysAndGoes(t, o, gated, text)

			// If there is no record of the installation, UngateServers makes the servers run as before,
			// but may change other bytes.
			require.NoError(t, os.WriteFile(file, []byte(is), 0o640))
			_, err = hook.UngateServers(o, nil)
			require.NoError(t, err)
			was, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.NotContains(t, string(was), "/opt/nod")
			assert.NotContains(t, string(was), `"gate"`)
			if strings.Contains(text, "args") && !strings.Contains(text, `\u`) && !strings.Contains(text, "other") {
				assert.Equal(t, strings.Join(strings.Fields(text), ""), strings.Join(strings.Fields(string(was)), ""))
			}
		})
	}
}

// gateStaysAndGoes checks that a second installation changes nothing, and that an uninstallation
// restores text, which is the file before the first installation.
func gateStaysAndGoes(t *testing.T, o hook.InstallOptions, gated []hook.GatedServer, text string) {
	t.Helper()
	again, none, err := hook.GateServers(o, validServer)
	require.NoError(t, err)
	assert.Empty(t, none)
	assert.False(t, again.Changed(), "a second installation changes nothing")
	_, err = hook.UngateServers(o, gated)
	require.NoError(t, err)
	was, err := os.ReadFile(o.Settings)
	require.NoError(t, err)
	assert.Equal(t, text, string(was))
}

// The command of a gated server is nod mcp gate, with the server's own command after the argument --.
func TestAGatedServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".mcp.json")
	text := `{"mcpServers": {"fs": {"command": "npx", "args": ["-y", "server-fs"]}, "a b": {"command": "x"}, "web": {"type": "sse", "url": "https://x"}, "nod": {"command": "/opt/nod", "args": ["mcp"]}, "odd": 7}}`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
	change, gated, err := hook.GateServers(hook.InstallOptions{Settings: file, Program: "/opt/nod", Args: []string{"--data", "/d"}}, validServer)
	require.NoError(t, err)
	assert.Equal(t, `{"mcpServers": {"fs": {"command": "/opt/nod", "args": ["mcp", "gate", "--data", "/d", "--name", "fs", "--bind", "--", "npx", "-y", "server-fs"]}, "a b": {"command": "/opt/nod","args": ["mcp","gate","--data","/d","--","x"]}, "web": {"type": "sse", "url": "https://x"}, "nod": {"command": "/opt/nod", "args": ["mcp"]}, "odd": 7}}`, string(change.After))
	assert.Equal(t, "left alone: web (nod mcp gate reaches servers by streamable HTTP alone, and this one has another type), nod (it is nod itself), odd (it is not an object)", change.Note)
	require.Len(t, gated, 2)

	// If the user has edited a gated server, UngateServers removes only the gate.
	edited := strings.Replace(string(change.After), `"server-fs"`, `"server-fs", "/home"`, 1)
	require.NoError(t, os.WriteFile(file, []byte(edited), 0o640))
	change, err = hook.UngateServers(hook.InstallOptions{Settings: file}, gated)
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(text, `"server-fs"`, `"server-fs", "/home"`, 1), string(change.After))
}

// If a server has a URL, the gate connects to it. The headers for the server are in the environment of
// the gate.
func TestAGatedURL(t *testing.T) {
	gate := func(name, entry string) (string, hook.Change) {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers": {"web": `+entry+`}}`), 0o600))
		change, gated, err := hook.GateServers(hook.InstallOptions{Settings: file, Program: "/opt/nod"}, validServer)
		require.NoError(t, err)
		require.Len(t, gated, strings.Count(string(change.After), "--upstream"))
		is, _ := strings.CutSuffix(strings.TrimPrefix(string(change.After), `{"mcpServers": {"web": `), "}}")

		// Without a record of the installation, the server still gets back its URL and its headers.
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(change.After), "--bind", "--bind\",\"--project\",\"/p", 1)), 0o600))
		undone, err := hook.UngateServers(hook.InstallOptions{Settings: file}, gated)
		require.NoError(t, err)
		assert.JSONEq(t, strings.Replace(`{"mcpServers": {"web": `+entry+`}}`, "streamable-http", "http", 1), string(undone.After))
		return is, change
	}
	is, change := gate("mcp.json", `{"type": "streamable-http", "url": "https://h/mcp", "headers": {"X-Key": "${KEY}", "Authorization": "Bearer a\"b"}}`)
	assert.JSONEq(t, `{"type": "stdio", "command": "/opt/nod", "args": ["mcp", "gate", "--name", "web", "--bind", "--upstream", "https://h/mcp"], "env": {"NOD_MCP_HEADERS": "Authorization: Bearer a\"b\nX-Key: ${KEY}"}}`, is)
	assert.Empty(t, change.Note)
	assert.NotContains(t, change.Diff(), `a\"b`)
	_, change = gate("mcp.json", `{"url": "https://h/mcp", "headers": {"A": "e", "B": "swordf\u0069sh", "C": "ab\/cd"}}, "left": {"type": "sse", "url": "https://h?key=hunter2", "headers": {"A": "hunter2"}}, "last": {"url": "https://h/mcp", "headers": {"A": "hunter2"}}`)
	for _, secret := range []string{"sword", "sh\"", "ab", "hunter2"} {
		assert.NotContains(t, change.Diff(), secret)
	}
	_, change = gate("mcp.json", `{"url": "https://h/mcp"}`)
	assert.Contains(t, change.Note, "its client cannot log in to a server behind the gate: if web needs that")

	for entry, why := range map[string]string{
		`{"url": "https://h", "oauth": {"clientId": "x"}}`:  "no means for its oauth",
		`{"url": "https://h?key=1"}`:                        "put the secret into a header",
		`{"url": "https://u:p@h"}`:                          "put the secret into a header",
		`{"url": "https://${HOST}/mcp"}`:                    "a variable of the client",
		`{"url": 7}`:                                        "not one of HTTP",
		`{"url": "https://h", "headers": {"A b": "c"}}`:     "cannot be carried",
		`{"url": "https://h", "headers": {"A": "c\nB: d"}}`: "cannot be carried",
		`{"url": "https://h", "headers": {"A": 7}}`:         "not texts",
		`{"url": "https://h", "headers": 7}`:                "not an object",
		`{"url": "https://h", "command": "x"}`:              "a command and a URL",
		`{"description": "none"}`:                           "it has no URL",
	} {
		is, change := gate("mcp.json", entry)
		assert.Equal(t, entry, is)
		assert.Contains(t, change.Note, why)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers": {"web": {"url": "https://h", "command": "/opt/nod", "args": ["mcp", "gate", "--", "x"]}}}`), 0o600))
	change, _, err := hook.GateServers(hook.InstallOptions{Settings: file, Program: "/opt/nod"}, validServer)
	require.NoError(t, err)
	assert.Contains(t, change.Note, "a command and a URL", "a gate of nod does not gate the URL beside it")
	_, change = gate(".gemini/settings.json", `{"url": "https://h/mcp"}`)
	assert.Contains(t, change.Note, "write httpUrl if it is")
}

// A program that only looks like nod does not count as nod. Its server gets the gate, or a message names
// the server. An uninstallation keeps its entry.
func TestAProgramThatLooksLikeNod(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".mcp.json")
	text := `{"mcpServers": {"a": {"command": "./evil", "args": ["mcp", "gate", "--", "x"]}, "b": {"command": "./nod", "args": ["mcp"]}}}`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
	change, gated, err := hook.GateServers(hook.InstallOptions{Settings: file, Program: "/opt/nod"}, validServer)
	require.NoError(t, err)
	assert.Contains(t, change.Note, "left alone: a (its gate is another program, ./evil")
	require.Len(t, gated, 1)
	assert.Equal(t, "b", gated[0].Name)
	assert.Contains(t, string(change.After), `{"command": "/opt/nod", "args": ["mcp", "gate", "--name", "b", "--bind", "--", "./nod", "mcp"]}`)
	change, err = hook.UngateServers(hook.InstallOptions{Settings: file}, nil)
	require.NoError(t, err)
	assert.Equal(t, text, string(change.After))
}

func TestAFileWithoutReadableServersIsLeftAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".mcp.json")
	o := hook.InstallOptions{Settings: file, Program: "/opt/nod"}
	_, _, err := hook.GateServers(o, validServer)
	require.ErrorContains(t, err, "does not exist")
	for _, text := range []string{`{}`, `{"context_servers":{"fs":{"command":"x"}}}`, `{"mcpServers": {}}`, `{"mcpServers": []}`, `{`, `[]`, `{"mcpServers":{"fs":{"command":7}}}`} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
		_, _, err := hook.GateServers(o, validServer)
		require.Error(t, err, text)
		is, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, text, string(is))
	}
}
