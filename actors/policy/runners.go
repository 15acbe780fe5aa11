package policy

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// runners are programs that build, test or check the project they stand in,
// with the words that bound what they do. A rule may hold such words and let
// others follow; of every other command it holds all words.
var runners = []string{
	"go test", "go build", "go vet", "go doc", "go list", "gofmt", "golangci-lint run", "staticcheck", "goimports", "make", "just", "task",
	"npm test", "npm run", "npm ci", "npm ls", "pnpm test", "pnpm run", "pnpm exec tsc", "pnpm lint", "pnpm build", "yarn test", "yarn run", "yarn build", "yarn lint", "bun test", "bun run",
	"npx tsc", "npx eslint", "npx vitest", "npx jest", "npx prettier", "npx biome", "tsc", "eslint", "vitest", "jest", "prettier", "biome",
	"cargo test", "cargo build", "cargo check", "cargo clippy", "cargo fmt", "cargo doc", "pytest", "ruff", "mypy", "uv run pytest", "poetry run pytest", "python -m pytest", "python3 -m pytest", "python3 -m py_compile", "tox",
	"mvn test", "mvn compile", "gradle test", "gradle build", "./gradlew test", "./gradlew build", "./gradlew", "dotnet test", "dotnet build", "swift build", "swift test", "xcodebuild", "swiftlint",
	"flutter test", "flutter analyze", "flutter build", "dart analyze", "dart format", "dart test", "dart run build_runner", "rake", "bundle exec rspec", "bundle exec rubocop", "mix test", "cmake --build", "ctest", "phpunit", "composer test",
	"git add", "git commit", "git fetch", "gh pr view", "gh pr list", "gh pr checks", "gh pr diff", "gh pr status", "gh issue view", "gh issue list", "gh run view", "gh run list", "gh repo view",
	"npm view", "bd show", "bd list", "bd ready", "bd search", "bd status", "docker ps", "docker logs", "docker compose ps", "docker compose logs", "tmux list-sessions", "tmux capture-pane",
}

// scripted are runners whose next word names what runs, so that a rule holds
// that word too.
var scripted = map[string]bool{"make": true, "just": true, "task": true, "npm run": true, "pnpm run": true, "yarn run": true, "bun run": true, "./gradlew": true, "rake": true, "xcodebuild": true}

// runnerWords is how many words of a command bound it as a runner's; 0 where
// it is none.
func runnerWords(argv []string) int {
	if len(argv) > 1 && argv[0] == "rtk" {
		if n := runnerWords(argv[1:]); n > 0 {
			return n + 1 // it shortens what the runner prints
		}
	}
	best := 0
	for _, r := range runners {
		words := strings.Fields(r)
		if len(words) > best && len(argv) >= len(words) && slices.Equal(words, argv[:len(words)]) {
			best = len(words)
			if scripted[r] {
				if len(argv) == best || !plain(argv[best]) || strings.HasPrefix(argv[best], "-") || strings.Contains(argv[best], "=") {
					return 0
				}
				best++
			}
		}
	}
	return best
}

// runnerReads are the runners that run no code of the project, so that further
// words must not make them do so: each has the flags that keep it to what a
// person was shown.
var runnerReads = compileSpecs(map[string]*spec{
	"git add":    {short: "Aunv", operand: unlimited, long: "all update dry-run verbose intent-to-add"},
	"git commit": {short: "aqvs", value: "m", operand: unlimited, long: "all quiet verbose signoff message: amend no-edit"},
	"git fetch":  {short: "pqvat", operand: unlimited, long: "all prune tags no-tags quiet verbose depth:", check: checkRemote},
	"npm view":   {operand: unlimited, text: true, long: "json", check: checkRemote}, "npm ls": {operand: unlimited, text: true, short: "a", long: "json all depth:"},
	"docker ps": {short: "aqln", long: "all no-trunc quiet latest size filter:"}, "docker logs": {short: "ft", value: "n", operand: 1, long: "follow timestamps tail: since: until:"},
	"docker compose ps": {short: "aq", operand: unlimited, long: "all quiet services"}, "docker compose logs": {short: "ft", value: "n", operand: unlimited, long: "follow timestamps tail: since: until: no-color"},
	"tmux list-sessions": {}, "tmux capture-pane": {short: "pJe", value: "tSE"},
	"gh pr view": ghRead(), "gh pr list": ghRead(), "gh pr checks": ghRead(), "gh pr diff": ghRead(), "gh pr status": ghRead(), "gh issue view": ghRead(), "gh issue list": ghRead(),
	"gh run view": ghRead(), "gh run list": ghRead(), "gh repo view": ghRead(),
})

func ghRead() *spec {
	return &spec{operand: 1, text: true, short: "c", value: "LqR", long: "limit: state: json: jq: repo: comments search: label: author: assignee: branch: status: workflow: log log-failed job: patch name-only required", check: checkGh}
}

// checkRemote refuses addresses: what is fetched comes from the project's own
// remotes and registry.
func checkRemote(_ *scope, a *args) string {
	if slices.ContainsFunc(a.operands, func(o word) bool { return strings.Contains(o.text, ":") }) {
		return "names an address"
	}
	return ""
}

func checkGh(_ *scope, a *args) string {
	if slices.ContainsFunc(a.flags, func(f flag) bool { return (f.name == "q" || f.name == "jq") && jqReads.MatchString(f.value) }) {
		return "its filter may read the environment"
	}
	return ""
}

// otherCode are flags by which runners take code, or a program, that is not the
// project's, or delete what they name.
var otherCode = set("exec toolexec vettool overlay eval E e c upload-pack receive-pack script-shell node-options init-script I config python-executable plugin load-path override execute execute-print execute-continue basetemp")

// oneDash are runners whose long flags have one dash, so that the letters of
// such a word are no flags of their own.
var oneDash = set("go gofmt goimports staticcheck xcodebuild mvn swift")

// bringsCode reports whether a word is a flag of otherCode, or may be taken for
// one: a long one may be written as its beginning, and one of a letter with
// others before it or its value behind it. Go's linker is named by a flag within
// a flag.
func bringsCode(program, w string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
	switch {
	case program == "go" && (strings.Contains(w, "extld") || strings.Contains(w, "extar")):
		return true
	case !strings.HasPrefix(w, "-") || name == "":
		return false
	case strings.HasPrefix(w, "--"):
		for code := range otherCode {
			if strings.HasPrefix(code, name) {
				return true
			}
		}
		return false
	case oneDash[program]:
		return otherCode[name]
	}
	letters := strings.IndexFunc(name+"=", func(r rune) bool { return !unicode.IsLetter(r) })
	return otherCode[name] || otherCode[name[:1]] || strings.Contains(name[:letters], "E")
}

// targets are runners that run every further word: an answer for one target says
// nothing about the next. The flag is one with which a word that only chooses
// may follow.
var targets = map[string]string{"make": "", "just": "", "task": "", "rake": "", "gradle": "--tests", "./gradlew": "--tests", "mvn": "-pl"}

// nextTarget reports whether one of a runner's further words is one more thing
// to run, besides the one that was shown.
func nextTarget(shown, rest []string) bool {
	chooses, runs := targets[shown[0]]
	runs = runs && len(shown) > 1
	for i, w := range rest {
		chosen := i > 0 && chooses != "" && rest[i-1] == chooses
		if runs && !chosen && !strings.HasPrefix(w, "-") && !isCount("-"+w) {
			return true
		}
	}
	return false
}

// further reports whether the words that a prefix leaves open keep to what was
// shown: they name nothing outside the project, set no variable, run no other
// target and bring no code of their own.
func further(a *Always, pl *place, rest []string) bool {
	argv := a.Argv
	if argv[0] == "rtk" && len(argv) > 1 {
		argv = argv[1:]
	}
	if s := cmp.Or(runnerReads[strings.Join(argv, " ")], runnerReads[argv[0]]); s != nil {
		args, why := s.parse(argv[0], plainly(rest))
		if why != "" || s.check != nil && s.check(nil, &args) != "" {
			return false
		}
	}
	return !nextTarget(argv, rest) && !slices.ContainsFunc(rest, func(w string) bool { return strays(argv[0], w, pl) })
}

// strays reports whether a further word of a runner leads out of what it runs,
// or to a file that says what else may run, such as a hook.
func strays(program, w string, pl *place) bool {
	flag := strings.HasPrefix(w, "-")
	if bringsCode(program, w) || !flag && strings.Contains(w, "=") {
		return true
	}
	parts := pieces(w)
	if flag && len(w) > 2 && w[1] != '-' {
		parts = append(parts, w[2:]) // -C/DIR
	}
	return slices.ContainsFunc(parts, func(p string) bool {
		out := isAbs(slashes(p)) || strings.HasPrefix(p, "~") || strings.Contains("/"+slashes(p)+"/", "/../")
		return out && p != "/dev/null" && !pl.inProject(p) || slices.ContainsFunc(splitPath(nil, p), func(seg string) bool {
			return len(seg) > 1 && seg[0] == '.' && fixedNames.has(seg, true)
		})
	})
}
