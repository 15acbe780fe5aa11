package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// examples contains the examples in each command's help, one per line.
var examples = map[string]string{
	"up":                "nod up\nnod up --demo\nnod up -d",
	"stop":              "nod stop",
	"open":              "nod open",
	"engine":            "nod engine --nats-url nats://bus.example:4222 --creds engine.creds",
	"connector":         "nod connector telegram",
	"token-service":     "nod token-service --settings tokens.json",
	"setup":             "nod setup\nnod setup --yes --no-service",
	"service install":   "nod service install",
	"service uninstall": "nod service uninstall",
	"service status":    "nod service status",
	"doctor":            "nod doctor",
	"uninstall":         "nod uninstall",
	"status":            "nod status\nnod status --short",
	"bench":             "nod bench\nnod bench --quick --json",
	"completion":        "source <(nod completion bash)\nnod completion fish > ~/.config/fish/completions/nod.fish",
	"version":           "nod version",
	"help":              "nod help allow",
	"ask":               "nod ask -- make release",
	"pending":           "nod pending\nnod pending --json",
	"show":              "nod show\nnod show 7hd2 --exact",
	"inbox":             "nod inbox",
	"voice":             "nod voice\nnod voice --pair ABCDEF2345\nnod voice --session fix-ci",
	"allow":             "nod allow\nnod allow 7hd2\nnod allow 7hd2 --for 30m",
	"deny":              "nod deny 7hd2 -m 'use make clean'",
	"answer":            "nod answer\nnod answer 7hd2 2\nnod answer 7hd2 keep the old name",
	"history":           "nod history\nnod history --session fix-ci -n 5\nnod history --outcome denied make release",
	"sessions":          "nod sessions",
	"freeze":            "nod freeze -m 'too many deletions'\nnod freeze --session fix-ci",
	"thaw":              "nod thaw\nnod thaw --session fix-ci",
	"grants":            "nod grants\nnod grants --all",
	"revoke":            "nod revoke 3fa91c20",
	"leave":             "nod leave --session fix-ci --for 30m --max-risk medium",
	"back":              "nod back\nnod back --session fix-ci",
	"login":             "nod login",
	"install":           "nod install claude-code\nnod install codex\nnod install mcp-gate --settings .mcp.json",
	"backup":            "nod backup /mnt/backup/nod-monday",
	"restore":           "nod --data ~/restored restore /mnt/backup/nod-monday",
	"grant":             "nod grant --session build --to deploy --permission @read:/srv/out --reason 'the deploy needs the build'",
	"gate":              "nod gate --session nightly --name backup --id b-1 --permission @write:/srv/backup --strict",
	"hook":              "nod hook claude-code",
	"mcp serve":         "nod mcp\nnod mcp --http 127.0.0.1:4281",
	"mcp gate":          "nod mcp gate --name fs -- npx -y @modelcontextprotocol/server-filesystem .\nnod mcp gate --upstream https://mcp.example/mcp",
	"acp":               "nod acp -- gemini --experimental-acp",
	"http":              "nod http --listen 127.0.0.1:4334",
	"resume":            "nod resume 5f0c1e7a",
	"exec":              "nod exec --contain -- npm test\nnod exec --session build -- make",
	"join":              "nod join 'INVITATION'",
	"session show":      "nod session show fix-ci",
	"session set":       "nod session set fix-ci --working-dir /src/app --network",
	"log tail":          "nod log tail\nnod log tail -f",
	"log search":        "nod log search --since 7d --outcome denied\nnod log search --who ann push",
	"log export":        "nod log export > nod.log.ndjson",
	"log verify":        "nod log verify\nnod log verify nod.log.ndjson --key UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4",
	"policy check":      "nod policy check < calls.ndjson",
	"policy explain":    "nod policy explain 'go test ./... && rm -rf build'",
	"policy test":       "nod policy test cases.txt",
	"policy suggest":    "nod policy suggest\nnod policy suggest ~/.claude/projects --apply",
	"policy import":     "nod policy import claude-code",
	"policy replay":     "nod policy replay ~/.claude/projects",
	"policy presets":    "nod policy presets",
	"settings apply":    "nod settings apply\nnod settings apply team.json",
	"settings show":     "nod settings show",
	"settings schema":   "nod settings schema > settings.schema.json",
	"approvers list":    "nod approvers list",
	"approvers remove":  "nod approvers remove Ann",
	"pair":              "nod pair telegram",
	"invite":            "nod invite laptop",
	"keys list":         "nod keys list",
	"keys add":          "nod keys add agent-build",
	"keys revoke":       "nod keys revoke agent-build",
	"keys rotate":       "nod keys rotate agent-build --overlap 24h",
	"keys config":       "nod keys config\nnod keys config --jwt --data ./nod-keys > accounts.conf",
	"keys push":         "nod keys push --data ./nod-keys --nats-url nats://bus.example:4222",
	"codex-app-server":  "nod codex-app-server -- codex app-server",
	"opencode":          "nod opencode",
	"kilo":              "nod kilo",
}

// exampleOf returns the first example of a command, such as "nod revoke", or "".
func exampleOf(command string) string {
	first, _, _ := strings.Cut(examples[strings.TrimSpace(strings.TrimPrefix(command, "nod"))], "\n")
	return first
}

// addExamples adds the examples to the help of a command and of all its subcommands.
func addExamples(n *kong.Node) {
	path := strings.TrimSpace(strings.TrimPrefix(n.FullPath(), "nod"))
	if text := examples[path]; text != "" {
		n.Detail = strings.TrimSpace(n.Detail + "\n\nExamples:\n\n  " + strings.ReplaceAll(text, "\n", "\n  "))
	}
	for _, child := range n.Children {
		addExamples(child)
	}
}
