package people

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	firstScreens = "testdata/firstscreens"
	screenRows   = 20 // of a terminal with 24 rows, without the rows of the shell or of the inbox around the text
)

// annsFiles are the files in the home directory of the first screens. Their calls are in calls.json.
var annsFiles = map[string]string{
	".bashrc":          "# ~/.bashrc\nexport EDITOR=vim\nalias ll='ls -l'\nexport PATH=\"$HOME/bin:$PATH\"\n",
	"Documents/tax.md": "2026\n", "shop-old/a.js": "1\n", ".aws/config": "[default]\n",
	"app/.git/refs/heads/fix-rounding": "1f7a1c0e5f4f8d5a0e9a4a3b8f6f1d2c3b4a5968\n",
	"app/.git/objects/info/alternates": "",
	"app/.git/HEAD":                    "ref: refs/heads/fix-rounding\n",
	"app/.git/config":                  "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@github.com:acme/shop.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
	"app/.gitignore":                   ".env\nbuild/\nnode_modules/\n", "app/build/a.js": "1\n",
	"app/.env":     "DATABASE_URL=postgres://shop:pw@db.internal/shop\n",
	"app/src/a.ts": "console.log(1)\n",
	"app/package.json": "{\n  \"name\": \"@acme/shop\",\n  \"version\": \"2.4.1\",\n  \"scripts\": {\n    \"test\": \"vitest run\",\n" +
		"    \"build\": \"tsc -p . && vite build\"\n  },\n  \"dependencies\": {\n    \"express\": \"^4.19.2\",\n    \"pg\": \"^8.11.5\"\n  }\n}\n",
	"app/src/price.ts": "import { Item } from \"./types\";\n\nexport function total(items: Item[]): number {\n  let sum = 0;\n  for (const item of items) {\n" +
		"    sum += item.price * item.count;\n  }\n  return sum;\n}\n\nexport function discount(sum: number, percent: number): number {\n  return sum - sum * percent;\n}\n// wip\n",
	"app/src/auth.ts": "import jwt from \"jsonwebtoken\";\nimport { KEY } from \"./config\";\n\nexport function user(token: string) {\n" +
		"  const claims = jwt.verify(token, KEY, { algorithms: [\"RS256\"] });\n  if (claims.exp < Date.now() / 1000) {\n    throw new Error(\"expired\");\n  }\n  return claims.sub;\n}\n",
	"app/src/report.ipynb": `{"cells":[{"cell_type":"code","id":"c1","metadata":{},"source":["import pandas as pd\n","df = pd.read_csv('sales.csv')\n"],"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
	"app/README.md":        "# Shop\n\nThe shop of Acme.\n\n## Run\n\n    npm start\n",
	"app/.github/workflows/ci.yml": "name: ci\non: [push, pull_request]\npermissions:\n  contents: read\njobs:\n  test:\n    runs-on: ubuntu-latest\n" +
		"    steps:\n      - uses: actions/checkout@v4\n      - run: npm ci\n      - run: npm test\n",
}

// firstCall is one call of calls.json. Risky and Truth are for the judge of the screens, and the person
// who is tested with the screens must not know them.
type firstCall struct {
	Tool  string          `json:"tool"`
	Risky bool            `json:"risky"`
	Truth string          `json:"truth"`
	Input json.RawMessage `json:"input"`
}

const annsHome = "/home/ann" // the home directory that calls.json and the screens have in place of the real one

// The first screen of each call, at the size of a small terminal, is as in screens.txt. From the screen alone, a
// person who does not know nod should see what would happen, where, and whether it is risky; docs/testing.md
// says how to try that.
func TestFirstScreens(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, text := range annsFiles {
		file := filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	var calls []firstCall
	data, err := os.ReadFile(filepath.Join(firstScreens, "calls.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &calls))

	prompts := askedByClaude(t, home, calls)
	var screens strings.Builder
	for i, p := range prompts {
		fmt.Fprintf(&screens, "##### %02d\n", i+1)
		rows := people.Rows(people.PrintedParts(&p, p.Request.CreatedAt), 80)
		for _, row := range rows[:min(len(rows), screenRows)] {
			screens.WriteString(row.Text + "\n")
		}
	}
	golden := filepath.Join(firstScreens, "screens.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(screens.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), screens.String())
}

// askedByClaude returns the prompts of Claude Code's calls in the project app of a home directory. Each call
// passes the hook and the engine. The prompts have annsHome in place of the home directory.
func askedByClaude(t *testing.T, home string, calls []firstCall) []schemas.Prompt {
	env := rig.Start(t, func(s *rig.Setup) {
		s.Engine, s.Settings = engine.Options{Home: home}, strings.Replace(rig.Everybody, `"deny"`, `"ask": ["WebFetch"], "deny"`, 1)
	})
	asker := env.Agent("local").Asker
	ctx, end := context.WithCancel(env.Ctx)
	var hooks sync.WaitGroup
	defer hooks.Wait()
	defer end()
	for i, c := range calls {
		in, err := json.Marshal(map[string]any{
			"hook_event_name": "PermissionRequest", "session_id": fmt.Sprintf("s%02d", i+1), "cwd": annsHome + "/app",
			"permission_mode": "default", "tool_name": c.Tool, "tool_input": c.Input,
		})
		require.NoError(t, err)
		in = bytes.ReplaceAll(in, []byte(annsHome), []byte(home))
		hooks.Go(func() {
			hook.Run(ctx, hook.ClaudeCode(), bytes.NewReader(in), io.Discard, func(context.Context) (hook.Nod, error) { return localNod{asker}, nil }, hook.Options{Host: "devbox", User: "ann"})
		})
	}
	var prompts []schemas.Prompt
	env.Soon("all calls are pending", func() bool {
		found, err := env.Ann().Pending(env.Ctx, schemas.Query{})
		prompts = found
		return err == nil && len(found) == len(calls)
	})
	at := time.Date(2026, 11, 28, 17, 30, 0, 0, time.UTC)
	bySession := make([]schemas.Prompt, len(calls))
	for _, p := range prompts {
		data, err := json.Marshal(p)
		require.NoError(t, err)
		var shown schemas.Prompt
		require.NoError(t, json.Unmarshal(bytes.ReplaceAll(data, []byte(home), []byte(annsHome)), &shown))
		shown.PendingID, shown.Request.CreatedAt, shown.Deadline = "7hd2q8", at, at.Add(7*24*time.Hour)
		var i int
		_, err = fmt.Sscanf(p.SessionID, "s%d", &i)
		require.NoError(t, err)
		bySession[i-1] = shown
	}
	return bySession
}

// localNod is the hook's connection to the nod of a test.
type localNod struct{ *bus.Asker }

func (n localNod) Withdraw(ctx context.Context, session, id, reason string) error {
	_, err := n.Asker.Withdraw(ctx, session, id, reason)
	return err
}

func (n localNod) HostResolved(ctx context.Context, p schemas.HostResolved) error {
	_, err := n.Asker.HostResolved(ctx, p)
	return err
}
