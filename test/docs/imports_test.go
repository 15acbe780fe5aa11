package docs

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/nodbus/nod"

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

func packages(t *testing.T) []pkg {
	list := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// The function in reports whether an import path matches one of the patterns. A pattern that ends with
// "/..." also matches all packages below it.
func in(importPath string, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		p = path.Join(module, p)
		if below, ok := strings.CutSuffix(p, "/..."); ok {
			return importPath == below || strings.HasPrefix(importPath, below+"/")
		}
		return importPath == p
	})
}

// anyPackage lists the packages that every package may import.
var anyPackage = []string{"internal/lazyregexp", "internal/loopback"}

// mayImport lists patterns of packages, each with the packages of nod that these packages may import.
// The first row that matches a package applies. Imports of tests do not count.
var mayImport = []struct {
	what string
	may  []string
}{
	{"schemas/...", nil},
	{"traces", nil},
	{"traces/otlp", []string{"internal/callerlimit", "traces"}},
	{"internal/bench", []string{"actors", "actors/connector", "bus/...", "embed", "schemas"}},
	{"internal/...", nil},
	{"bus/roles", []string{"schemas"}},
	{"bus/logchain", []string{"schemas"}},
	{"bus", []string{"schemas", "schemas/redact", "bus/logchain", "bus/roles", "traces"}},
	{"actors/policy/pathname", nil},
	{"actors/policy/tools", []string{"schemas"}},
	{"actors/policy/weburl", []string{"schemas", "schemas/redact"}},
	{"actors/policy/gitstore", nil},
	{"actors/policy/filediff", []string{"actors/policy/tools", "schemas", "schemas/redact"}},
	{"actors/policy/secrets", []string{"actors/policy/pathname"}},
	{"actors/policy/shell/word", nil},
	{"actors/policy/commands", []string{"actors/policy/pathname", "actors/policy/secrets", "actors/policy/shell/word", "actors/policy/weburl", "schemas"}},
	{"actors/policy/shell", []string{"actors/policy/commands", "actors/policy/pathname", "actors/policy/secrets", "actors/policy/shell/word", "actors/policy/weburl", "schemas"}},
	{"actors/policy/contained", []string{"actors/policy/commands", "actors/policy/pathname", "actors/policy/secrets", "actors/policy/shell", "actors/policy/shell/word", "connectors/agents/readable"}},
	{"actors/policy/rules", []string{"actors/policy/commands", "actors/policy/pathname", "actors/policy/shell", "actors/policy/tools", "actors/policy/weburl", "schemas"}},
	{"actors/policy", []string{"actors/policy/commands", "actors/policy/contained", "actors/policy/filediff", "actors/policy/gitstore", "actors/policy/pathname", "actors/policy/rules", "actors/policy/secrets", "actors/policy/shell", "actors/policy/shell/word", "actors/policy/tools", "actors/policy/weburl", "schemas", "schemas/redact"}},
	{"actors/engine", []string{"actors", "actors/policy", "actors/policy/rules", "bus", "schemas", "traces"}},
	{"actors/connector", []string{"actors", "bus", "schemas", "connectors/people", "traces"}},
	{"actors/agent", []string{"actors", "bus", "schemas"}},
	{"actors", []string{"bus", "schemas"}},
	{"connectors/httpserve", nil},
	{"connectors/people/payload", nil},
	{"connectors/people/internal/ratelimit", nil},
	{"connectors/people/discord/discordtest", []string{"connectors/people/internal/ratelimit"}},
	{"connectors/people/slack/slacktest", []string{"connectors/people/internal/ratelimit"}},
	{"connectors/people/telegram/telegramtest", []string{"connectors/people/internal/ratelimit"}},
	{"connectors/people/whatsapp/whatsapptest", []string{"connectors/people/internal/ratelimit"}},
	{"connectors/people/peopletest", []string{"schemas", "connectors/people", "internal/testlog"}},
	{"connectors/people/web", []string{"schemas", "connectors/people", "connectors/people/payload", "connectors/people/web/issuer", "connectors/httpserve", "internal/callerlimit"}},
	{"connectors/people/web/issuer", []string{"schemas"}},
	{"connectors/people", []string{"actors/policy", "connectors/people/payload", "schemas"}},
	{"connectors/people/...", []string{"schemas", "connectors/people", "connectors/people/payload", "connectors/people/webapi", "connectors/httpserve"}},
	{"connectors/agents/httpapi", []string{"schemas", "connectors/agents", "connectors/agents/hook", "connectors/httpserve", "traces"}},
	{"connectors/agents/tokens/...", []string{"schemas"}},
	{"connectors/agents/contain/inner", nil},
	{"connectors/agents/contain/egress", nil},
	{"connectors/agents/readable", nil},
	{"connectors/agents/contain", []string{"connectors/agents", "connectors/agents/contain/...", "connectors/agents/exec", "connectors/agents/readable"}},
	{"connectors/agents/exec", []string{"schemas", "connectors/agents", "connectors/agents/readable"}},
	{"connectors/agents/relay", []string{"schemas"}},
	{"connectors/agents/mcp", []string{"schemas", "connectors/agents", "connectors/agents/relay", "traces"}},
	{"connectors/agents/...", []string{"schemas", "connectors/agents", "connectors/agents/relay"}},
	{"embed/metrics", []string{"bus", "connectors/httpserve", "schemas"}},
	{"embed", []string{"embed/metrics", "actors/...", "bus/...", "connectors/people/...", "connectors/agents", "connectors/agents/hook", "connectors/agents/httpapi", "connectors/httpserve", "schemas", "traces/..."}},
	{"nodtest", []string{"", "actors", "actors/connector", "bus/...", "embed", "schemas"}},
	{"", []string{"bus/...", "schemas"}}, // the root package, which is the Go client
	{"examples/...", []string{"", "actors", "actors/connector", "bus/...", "connectors/people", "schemas"}},
	{"cmd/...", []string{"..."}},
	{"test/...", []string{"..."}},
}

func TestImportsGoOneWay(t *testing.T) {
	for _, p := range packages(t) {
		i := slices.IndexFunc(mayImport, func(row struct {
			what string
			may  []string
		}) bool {
			return in(p.ImportPath, row.what)
		})
		require.GreaterOrEqual(t, i, 0, "%s has no row in mayImport: add one", p.ImportPath)
		for _, imported := range p.Imports {
			if in(imported, "...") && !in(imported, slices.Concat(mayImport[i].may, anyPackage)...) {
				t.Errorf("%s may not import %s", p.ImportPath, imported)
			}
		}
	}
}

func TestEachLibraryIsImportedOnlyByItsOwners(t *testing.T) {
	owners := map[string][]string{
		"github.com/nats-io/nats.go":            {"bus/...", "internal/bench", "test/..."},
		"golang.org/x/net":                      {"connectors/agents/contain/egress"},
		"github.com/nats-io/nats-server":        {"bus/...", "test/..."},
		"github.com/nats-io/jwt":                {"bus/...", "test/..."},
		"github.com/minio/highwayhash":          {"bus"}, // nats-server's descriptions of streams and consumers have this checksum
		"github.com/asynkron/protoactor-go":     {"actors/..."},
		"mvdan.cc/sh":                           {"actors/policy", "actors/policy/contained", "actors/policy/shell/...", "connectors/people/payload"}, // actors/policy and contained import this module only in tests
		"github.com/aymanbagabas/go-udiff":      {"actors/policy/filediff", "connectors/people/payload", "connectors/agents/mcpgate"},
		"github.com/santhosh-tekuri/jsonschema": {"schemas", "connectors/agents/httpapi"}, // imported only in tests, as schemas/schema.go explains
		"github.com/prometheus/":                {"embed/metrics"},
		"go.opentelemetry.io/otel":              {"traces/...", "bus", "actors/engine", "actors/connector", "connectors/agents/httpapi", "connectors/agents/mcp", "test/..."}, // httpapi and mcp import this module only in tests
		"google.golang.org/protobuf":            {"traces/otlp", "internal/testcollector"},
		"go.opentelemetry.io/proto":             {"traces/otlp", "internal/testcollector", "test/..."}, // test/... imports this module only in tests
		"github.com/alecthomas/kong":            {"cmd/..."},
		"github.com/coder/websocket":            {"connectors/people/web", "connectors/people/voice", "connectors/people/slack/...", "connectors/people/discord/...", "connectors/agents/acp", "test/..."},
		"github.com/chromedp":                   {"connectors/people/web"}, // imported only in tests
		"github.com/tmaxmax/go-sse":             {"connectors/agents/opencode", "connectors/agents/mcpgate"},
		"github.com/emersion/":                  {"connectors/people/wake"}, // imported only in tests
		"github.com/standard-webhooks/":         {"connectors/people/wake"}, // imported only in tests
		"github.com/coreos/go-oidc":             {"connectors/agents/tokens", "connectors/people/web/issuer"},
		"golang.org/x/oauth2":                   {"connectors/people/web/issuer"},
		"github.com/go-jose/go-jose":            {"connectors/agents/tokens/...", "connectors/people/web", "test/..."}, // imported only in tests
		"github.com/landlock-lsm/go-landlock":   {"connectors/agents/exec"},
		"github.com/modelcontextprotocol":       {"connectors/agents/mcp", "connectors/agents/mcpgate", "test/..."}, // mcpgate imports this module only in tests
		"github.com/coder/acp-go-sdk":           {"connectors/agents/acp", "test/..."},                              // acp imports this module only in tests
		"github.com/anishathalye/porcupine":     {"test/chaos"},                                                     // only tests import this module
		"charm.land/":                           {"connectors/people/inbox", "cmd/nod/internal/checklist"},
		"github.com/charmbracelet/":             {"connectors/people", "connectors/people/inbox", "cmd/nod/internal/checklist"},
	}
	for _, p := range packages(t) {
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for library, may := range owners {
				if strings.HasPrefix(imported, library) && !in(p.ImportPath, may...) {
					t.Errorf("%s may not import %s: only %v may", p.ImportPath, imported, may)
				}
			}
		}
	}
}

func TestTheClientDoesNotImportProtoActor(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath == module {
			for _, dep := range p.Deps {
				require.False(t, strings.HasPrefix(dep, "github.com/asynkron/"), dep)
			}
		}
	}
}

// nod does not import OpenTelemetry's own exporter, because it links gRPC, which would slow the start
// of each hook. The small module of OpenTelemetry's messages does not link gRPC.
func TestNodLinksNoGRPC(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath == module+"/cmd/nod" {
			for _, dep := range p.Deps {
				require.False(t, strings.HasPrefix(dep, "google.golang.org/grpc") || strings.HasPrefix(dep, "go.opentelemetry.io/proto/otlp"), dep)
			}
		}
	}
}

func TestNoPackageIsNamedUtil(t *testing.T) {
	for _, p := range packages(t) {
		require.NotContains(t, []string{"util", "utils", "common", "helpers", "types", "misc"}, path.Base(p.ImportPath), p.ImportPath)
	}
}
