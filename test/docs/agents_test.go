package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/test/internal/rig"
)

// agentRows returns the rows of docs/agents.md. Each row has a host, an event at which nod decides, and the
// replies that the host's dialect can write.
func agentRows(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| Agent | Versions run | Event | Words with a denial | Edits | Its own lasting answers | Its own prompt at the same time | A dead hook | Notices |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, host := range hook.Hosts() {
		s := host.Setup
		for _, event := range append(slices.Clone(s.Events), s.Strict...) {
			installed := "`nod install " + host.Name + "`"
			if slices.Contains(s.Strict, event) {
				installed += " `--strict`"
			}
			call := hook.Call{Event: event, Input: json.RawMessage(`{"a":1}`), ChangesInput: true}
			said := func(v hook.Verdict) string {
				out, _ := host.Dialect.Reply(call, v)
				return string(out)
			}
			edits := yes(strings.Contains(said(hook.Verdict{Effect: hook.Allow, Edited: true, Input: json.RawMessage(`{"a":2}`)}), `:{"a":2}`))
			if edits == "yes" && host.ChangesSince != "" {
				edits = "since " + host.ChangesSince
			}
			if edits == "no" {
				edits = "refused, with the edit in the words"
			}
			dead := "blocks the call"
			if !slices.Contains(s.Blocks, event) {
				dead = "the agent asks by itself"
			}
			versions := strings.Join(host.Tested, ", ")
			if versions == "" {
				versions = "none: by its documents"
			}
			fmt.Fprintf(&b, "| %s, %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", host.Agent, installed, versions, event,
				yes(strings.Contains(said(hook.Verdict{Effect: hook.Deny, Reason: "said by Ann"}), "said by Ann")), edits,
				yes(strings.Contains(said(hook.Verdict{Effect: hook.Allow, Input: call.Input, Update: json.RawMessage(`{"rule":1}`)}), `{"rule":1}`)),
				yes(races(host, event)), dead, noticesAt(s))
		}
	}
	return b.String()
}

// noticesAt says when the host's model gets notices.
func noticesAt(s hook.Setup) string {
	at := "with a denial"
	for i, event := range s.Notices {
		at += []string{"; at ", ", "}[min(i, 1)] + event
		if slices.Contains(s.Strict, event) {
			at += " (`--strict`)"
		}
	}
	if len(s.Notices) == 0 {
		at += " alone"
	}
	return at
}

// The function races reports whether the host asks its own user at the same time as the hook.
func races(host hook.Host, event string) bool {
	call, _ := host.Dialect.Read(fmt.Appendf(nil, `{"session_id":"s","cwd":"/p","hook_event_name":%q,"tool_name":"Bash","tool_input":{}}`, event)) // a host with another format does not ask its user
	return call.HostAsks
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func TestAgentsPageMatchesTheDialects(t *testing.T) {
	const from, to = "<!-- agents -->\n", "<!-- /agents -->"
	const page = "docs/agents.md"
	head, rest, ok := strings.Cut(rig.Document(t, page), from)
	require.True(t, ok)
	table, tail, ok := strings.Cut(rest, to)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("../..", page), []byte(head+from+agentRows(t)+to+tail), 0o644))
		return
	}
	require.Equal(t, agentRows(t), table, "run go test ./test/docs -run Agents -update")
}
