package contained

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/internal/loopback"
)

// endpoint returns the network permission for the host of a URL.
func endpoint(u *url.URL) string {
	port := u.Port()
	if port == "" {
		if port = "443"; u.Scheme == "http" {
			port = "80"
		}
	}
	return "@network:" + strings.ToLower(u.Hostname()) + ":" + port
}

// registry sorts the subcommands of a package manager by how they use the network.
type registry struct {
	hosts  []string
	fetch  string // subcommands that fetch from the network
	local  string // subcommands that need no network; "*" means all other subcommands
	bare   string // the subcommand that a line without a subcommand runs
	global string // flags that install outside the project
}

var (
	npmHosts   = []string{"registry.npmjs.org:443"}
	pyHosts    = []string{"files.pythonhosted.org:443", "pypi.org:443"}
	goHosts    = []string{"proxy.golang.org:443", "sum.golang.org:443"}
	cargoHosts = []string{"index.crates.io:443", "static.crates.io:443"}
	gemHosts   = []string{"index.rubygems.org:443", "rubygems.org:443"}
)

var registries = map[string]registry{
	"npm":      {hosts: npmHosts, fetch: "install i ci add update up upgrade audit outdated view info show search dedupe install-test it create exec x", local: "run run-script test t tst start ls list pack explain why root prefix bin help version rebuild --version -v", bare: "help", global: "-g --global --location=global"},
	"pnpm":     {hosts: npmHosts, fetch: "install i add update up audit outdated dlx fetch create", local: "run test t start ls list exec why build lint typecheck check dev format --version -v", bare: "run", global: "-g --global"},
	"yarn":     {hosts: []string{"registry.yarnpkg.com:443"}, fetch: "install add up upgrade dlx audit outdated info create", local: "run test start build lint why list typecheck check dev format exec workspace workspaces --version -v", bare: "install", global: "global"},
	"bun":      {hosts: npmHosts, fetch: "install i add update outdated create x", local: "run test build pm --version -v", bare: "run", global: "-g --global"},
	"pip":      {hosts: pyHosts, fetch: "install download wheel index", local: "list show freeze check --version help", bare: "help"},
	"poetry":   {hosts: pyHosts, fetch: "install add update lock sync", local: "run show check build env version --version", bare: "help"},
	"uv":       {hosts: pyHosts, fetch: "sync add lock", local: "run tree version --version", bare: "help"},
	"cargo":    {hosts: cargoHosts, fetch: "fetch update add search audit generate-lockfile", local: "build b check c test t run r clippy fmt doc d bench clean tree metadata nextest expand fix llvm-cov version --version -V", bare: "help"},
	"bundle":   {hosts: gemHosts, fetch: "install update add outdated lock", local: "exec check list show info", bare: "install"},
	"composer": {hosts: []string{"api.github.com:443", "codeload.github.com:443", "repo.packagist.org:443"}, fetch: "install update require", local: "test run-script run show validate dump-autoload exec", bare: "help"},
	"mix":      {hosts: []string{"builds.hex.pm:443", "hex.pm:443", "repo.hex.pm:443"}, fetch: "deps.get deps.update", local: "test compile format credo dialyzer run", bare: "run"},
	"flutter":  {hosts: []string{"pub.dev:443"}, fetch: "pub", local: "test analyze build doctor --version", bare: "help"},
	"dart":     {hosts: []string{"pub.dev:443"}, fetch: "pub", local: "test analyze format run fix compile --version", bare: "help"},
	"dotnet":   {hosts: []string{"api.nuget.org:443"}, fetch: "restore add", local: "build test run format clean --version --info", bare: "help"},
	"go":       {hosts: goHosts, fetch: "get", local: "build test vet run list doc generate fmt version fix clean tool help", bare: "help"},
	"go mod":   {hosts: goHosts, fetch: "download tidy", local: "graph verify why edit init vendor", bare: "help"},
	"uv pip":   {hosts: pyHosts, fetch: "install compile sync", local: "list show freeze check tree", bare: "help"},
}

// evaluatesAt reports whether the word at index i is code that bun evaluates.
func (c *command) evaluatesAt(i int) bool {
	return c.name == "bun" && i == 1 && len(c.args) > 1 && slices.Contains([]string{"-e", "--eval", "-p", "--print"}, c.args[0].Text)
}

func (c *command) manages() {
	name, args := c.name, c.args
	if c.evaluatesAt(1) {
		c.runsCode(args[1])
		return
	}
	if name == "pip3" {
		name = "pip"
	}
	reg := registries[name]
	sub, rest := subcommandOf(args)
	if more, ok := registries[name+" "+sub.Text]; ok && sub.Known {
		reg, name = more, name+" "+sub.Text
		sub, rest = subcommandOf(rest)
	}
	if sub.Text == "" && !sub.Known && len(args) > 0 && !strings.HasPrefix(args[0].Before(), "-") {
		c.refuse("has a subcommand that is not known")
		return
	}
	text := sub.Text
	if text == "" {
		if text = reg.bare; len(args) > 0 {
			text = args[0].Text
		}
	}
	for _, t := range args {
		if t.Text != "" && contains(reg.global, t.Text) {
			c.refuse("installs outside the project")
			return
		}
	}
	switch {
	case text == "pub" && !(len(rest) > 0 && contains("get upgrade outdated add deps", rest[0].Text)):
		c.refuse("pub may do more than fetch with these words")
	case contains(reg.fetch, text):
		if name == "go" || name == "cargo" || !c.remoteSource(rest) {
			for _, h := range reg.hosts {
				c.need(c.Words, "@network:"+h)
			}
		}
		if text == "exec" || text == "x" || text == "dlx" {
			c.again(rest)
			return
		}
		c.namedOutputs(rest)
	case contains(reg.local, text):
		c.runs(text, rest)
	default:
		c.refuse(text + " is not a subcommand that nod can bound")
	}
}

// globalFlags returns the words before a subcommand. The argument rest has the words after the subcommand.
func (c *command) globalFlags(rest []shell.Term) []shell.Term {
	return slices.Clone(c.args[:max(0, len(c.args)-len(rest)-1)])
}

func subcommandOf(args []shell.Term) (shell.Term, []shell.Term) {
	for i, t := range args {
		switch prev := ""; {
		case i > 0 && strings.HasPrefix(args[i-1].Text, "-"):
			if prev = args[i-1].Text; prev == "-C" || prev == "--prefix" || prev == "--dir" || prev == "--cwd" || prev == "--filter" || prev == "-w" || prev == "--workspace" || prev == "-F" {
				continue
			}
		}
		if !t.Known || !strings.HasPrefix(t.Text, "-") {
			return t, args[i+1:]
		}
	}
	return shell.Term{Known: true}, nil
}

// remoteSource refuses a package that comes from an address instead of the registry. It reports whether it
// has refused a package.
func (c *command) remoteSource(rest []shell.Term) bool {
	for _, t := range rest {
		if strings.Contains(t.Text, "://") || strings.Contains(t.Text, "git+") {
			c.refuse("fetches from an address that is not its registry")
			return true
		}
	}
	return false
}

// runs checks the command that a subcommand such as run or exec starts.
func (c *command) runs(sub string, rest []shell.Term) {
	inner := *c
	switch inner.args = rest; sub {
	case "exec", "why", "run":
		if c.name == "poetry" || c.name == "uv" || sub == "exec" {
			c.again(rest)
			return
		}
	}
	inner.flags([]string{c.name, sub}, append(c.globalFlags(rest), rest...))
	inner.targets()
	inner.unreadCode()
	if c.name == "go" || c.name == "bun" && sub == "run" {
		inner.mayWrap()
	}
}

// farTargets are words in the names of targets and scripts that act outside the project or on a database.
var farTargets = []string{"deploy", "publish", "release", "push", "destroy", "drop", "flush", "fresh", "truncate", "erase", "migrate", "rollback", "reset", "seed", "purge", "wipe", "nuke", "prune", "uninstall", "prod", "upload", "ship", "sync-db"}

func (c *command) targets() {
	if !takesTargets[c.name] && !strings.Contains(c.Words[0].Text, "/") && interpreters[c.name] == nil && c.name != "source" && c.name != "." {
		return
	}
	for i, t := range c.args {
		if !t.Known && t.Before() == "" && takesTargets[c.name] && i == 0 {
			c.refuse("runs a target that is not known")
			return
		}
		c.farTarget(t.Text)
	}
}

// farTarget refuses a target whose name shows that it changes more than the project.
func (c *command) farTarget(name string) {
	low := strings.ToLower(name)
	if strings.HasPrefix(low, "-") || strings.ContainsAny(low, "/. =") {
		return
	}
	for part := range strings.FieldsFuncSeq(low, func(r rune) bool { return r == ':' || r == '-' || r == '_' }) {
		if slices.Contains(farTargets, part) {
			c.refuse("runs " + name + ", which may change more than the project's files")
			return
		}
	}
}

var takesTargets = set("make gmake just task rake npm pnpm yarn bun gradle gradlew mvn mvnw ninja nx turbo invoke inv nox tox hatch pdm mix composer bundle sbt lein grunt gulp ant bazel cmake lerna deno cargo")

// npx checks a command of npx, which fetches a package and runs it. A known runner, such as jest, needs no
// network, because it is usually installed in the project. Any other package needs permission to reach
// npm's hosts.
func (c *command) npx() {
	_, operands := split(c.args, "-p", "--package")
	before := slices.IndexFunc(c.args, func(t shell.Term) bool { return !strings.HasPrefix(t.Before(), "-") })
	flags, _ := split(c.args[:max(before, 0)])
	if hasFlag(flags, "cp", "--call", "--package", "--node-options") || before < 0 || len(operands) == 0 || !operands[0].Known {
		c.refuse("runs a package that is not known")
		return
	}
	if !commands.IsRunner("npx", operands[0].Text) {
		for _, h := range npmHosts {
			c.need(c.Words, "@network:"+h)
		}
	}
	at := before
	for _, t := range c.args[at:] {
		c.farTarget(t.Text)
	}
	c.again(c.args[at:])
}

func (c *command) uvx() {
	for _, h := range pyHosts {
		c.need(c.Words, "@network:"+h)
	}
	_, operands := split(c.args, "--from", "--with", "-p")
	c.again(operands)
}

// downloads checks curl and wget, which may only read, and which need permission for their hosts.
func (c *command) downloads() {
	flags, operands := split(c.args, "-o", "-O", "-H", "-A", "-e", "-m", "-w", "-X", "--header", "--output", "--max-time", "--connect-timeout", "--retry", "--request", "--user-agent", "-P", "--write-out")
	for i, t := range c.args {
		if !t.Known && t.Before() == "" && !(i > 0 && (c.args[i-1].Text == "-H" || c.args[i-1].Text == "--header")) {
			c.refuse("reaches a host that is not known")
			return
		}
		if i > 0 && (c.args[i-1].Text == "-X" || c.args[i-1].Text == "--request") && t.Text != "GET" && t.Text != "HEAD" {
			c.refuse("changes another system")
		}
		if c.name == "wget" && i > 0 && c.args[i-1].Text == "-O" {
			c.writes(t, true)
		}
	}
	if hasFlag(flags, "dFTuKE", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "--form", "--upload-file", "--post-data", "--post-file", "--config", "--user", "--cert", "--netrc", "--next", "--proxy") {
		c.refuse("sends data to another system")
	}
	if c.name == "curl" && hasFlag(flags, "OJ", "--remote-name", "--remote-header-name") || c.name == "wget" && !hasFlag(flags, "qO", "--output-document", "--spider") {
		c.refuse("writes a file whose name the server chooses")
	}
	c.namedOutputs(c.args)
	for _, t := range operands {
		c.reaches(t)
	}
}

// reaches adds the permission for a URL. A container's localhost has only the servers that the same
// line starts.
func (c *command) reaches(t shell.Term) {
	text := t.Before()
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(text, "{}[]*") || !t.Known && !strings.Contains(strings.TrimPrefix(text, u.Scheme+"://"), "/") {
		c.refuse("reaches a host that is not known")
		return
	}
	addr, err := netip.ParseAddr(u.Hostname())
	switch local := loopback.Is(u.Hostname()) || err == nil && addr.IsUnspecified(); {
	case local && c.script.Background:
	case local:
		c.refuse("reaches a server of this machine, which a contained command cannot")
	case err == nil, !strings.Contains(u.Hostname(), "."):
		c.refuse("reaches an inner address")
	default:
		c.need(c.Words, endpoint(u))
	}
}

func contains(list, word string) bool {
	return strings.Contains(" "+list+" ", " "+word+" ") && word != "" && !strings.Contains(word, " ")
}

func set(names string) map[string]bool {
	out := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		out[n] = true
	}
	return out
}
