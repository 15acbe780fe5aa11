package policy

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
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

// Propose is the rules that would allow this call and its like, the narrowest
// first. It proposes none for what already is allowed, for what no rule can
// allow, and for what nod cannot bound: inline code, deletion, computed words.
func (p *Policy) Propose(c Call) []Always {
	if p.Check(c).Effect != Ask {
		return nil
	}
	var out []Always
	for _, need := range p.needs(c) {
		out = append(out, need...)
	}
	if len(out) == 0 || p.With(out...).Check(c).Effect != Allow {
		return nil
	}
	return out
}

// needs are, for each thing in a call that asks, the rules that would settle
// it. It is empty where some thing has none.
func (p *Policy) needs(c Call) [][]Always {
	pl := p.at(&c)
	t := canonical(c.ToolName)
	in, err := readInput(c.Input)
	if err != nil {
		return nil
	}
	switch t.kind {
	case kindShell:
		return p.shellNeeds(in, pl)
	case kindEdit:
		return editNeeds(in, t, &pl)
	case kindNotes:
		return [][]Always{{{Tool: t.name, Project: pl.project}}}
	}
	return nil
}

func (p *Policy) shellNeeds(in input, pl place) [][]Always {
	src, dir, why := in.command()
	if dir != "" {
		pl.dirs = newPlace(&Call{Cwd: dir}).dirs
		pl.lead = p.secrets.leads(pl.dirs)
	}
	line, _ := p.read(src, pl)
	if why != "" || line.why != "" || line.notes || pl.project == "" {
		return nil
	}
	var out [][]Always
	for i := range line.parts {
		part := &line.parts[i]
		if part.why == "" {
			continue
		}
		argv, ok := part.argv()
		if !ok || part.touch {
			return nil
		}
		var options []Always
		if n := runnerWords(argv); n > 0 {
			options = []Always{{Tool: "Bash", Argv: argv[:n], Prefix: true, Project: pl.project}}
			if len(argv) > n {
				options = append([]Always{{Tool: "Bash", Argv: argv, Project: pl.project}}, options...)
			}
		} else if p.boundable(argv, &pl) {
			options = []Always{{Tool: "Bash", Argv: argv, Project: pl.project}}
		}
		if len(options) == 0 {
			return nil
		}
		out = append(out, options)
	}
	return out
}

// argv is the part's words where all are known and none is a pattern.
func (p *part) argv() ([]string, bool) {
	if p.bad || len(p.words) == 0 {
		return nil, false
	}
	out := make([]string, len(p.words))
	for i, w := range p.words {
		if w.glob {
			return nil, false
		}
		out[i] = w.text
	}
	return out, true
}

// boundable reports whether nod can say what a command does: it is a program
// by its plain name, and no more than medium in the table of risks.
func (p *Policy) boundable(argv []string, pl *place) bool {
	name := base(argv[0])
	if interpreters[name] || wrappers[name] || name == "nod" || !plain(argv[0]) {
		return false
	}
	f := &facts{pol: p, place: pl, argvs: [][]string{argv}, words: argv}
	for _, h := range f.hazards(argv) {
		if h.risk == schemas.RiskHigh || h.why == "deletes files" || h.why == "uses the network" || h.why == "installs software" || h.why == "stops processes" {
			return false
		}
	}
	_, known := hazards[name]
	sets := slices.ContainsFunc(argv[1:], func(a string) bool { return !strings.HasPrefix(a, "-") && strings.Contains(a, "=") })
	return known && !sets && !slices.Contains(argv, inlineCode[name])
}

func editNeeds(in input, t tool, pl *place) [][]Always {
	paths, ok := in.filePaths(t)
	if !ok || pl.project == "" {
		return nil
	}
	var out [][]Always
	for _, p := range paths {
		all := pl.resolve(p)
		if len(all) != 1 || isGlob(p) || fixedNames.has(pl.inside(all[0]), true) {
			return nil
		}
		options := []Always{{Tool: t.name, Path: all[0], Project: pl.project}}
		if dir := editDir(all[0], pl); !pl.aboveHome(dir) {
			options = append(options, Always{Tool: t.name, Path: dir + "/", Project: pl.project})
		}
		out = append(out, options)
	}
	return out
}

// editDir is the directory whose files are edited like p: the project or its
// main tree, the hidden one in it that p lies in, or else p's own.
func editDir(p string, pl *place) string {
	dir := path.Dir(p)
	if !pl.inTree(p) {
		return dir
	}
	top := pl.main
	if within(p, pl.project) {
		top = p[:len(p)-len(pl.inside(p))]
	}
	for within(dir, top) && len(unusual(dir[len(top):])) == 0 {
		if dir == top {
			return top
		}
		dir = path.Dir(dir)
	}
	return dir
}

// Suggestion is a rule that would have spared questions.
type Suggestion struct {
	Rule   Always   `json:"rule"`
	Spares int      `json:"spares"` // questions of these calls that it, with the suggestions before it, answers
	Also   []string `json:"also"`   // what else it would have allowed, and what that may do
}

// Suggest proposes up to limit rules that would have spared the most of these
// calls' questions, the best first. It looks for the best next one each time,
// so the sum counts each question once.
func (p *Policy) Suggest(calls []Call, limit int) []Suggestion {
	var open []map[string]bool // for each question, the rules of which one for each part is needed
	byKey := map[string]Always{}
	var parts [][][]string
	for _, c := range calls {
		if p.Check(c).Effect != Ask {
			continue
		}
		needs := p.needs(c)
		if len(needs) == 0 {
			continue
		}
		all := []Always{}
		question, keys := [][]string{}, map[string]bool{}
		for _, options := range needs {
			var names []string
			for _, a := range options {
				byKey[a.String()] = a
				names = append(names, a.String())
				keys[a.String()] = true
			}
			all = append(all, options...)
			question = append(question, names)
		}
		if p.With(all...).Check(c).Effect == Allow {
			parts, open = append(parts, question), append(open, keys)
		}
	}
	return choose(parts, open, byKey, limit)
}

func choose(parts [][][]string, open []map[string]bool, byKey map[string]Always, limit int) []Suggestion {
	chosen := map[string]bool{}
	done := make([]bool, len(parts))
	var out []Suggestion
	for len(out) < limit {
		spares := map[string]int{}
		for i := range parts {
			for key := range open[i] {
				if !done[i] && settled(parts[i], chosen, key) {
					spares[key]++
				}
			}
		}
		// Of equals, the one that says more is the narrower one.
		best := slices.SortedFunc(maps.Keys(spares), func(a, b string) int {
			return cmp.Or(spares[b]-spares[a], len(byKey[b].Argv)-len(byKey[a].Argv), cmp.Compare(a, b))
		})
		if len(best) == 0 {
			return out
		}
		key := best[0]
		chosen[key] = true
		for i := range parts {
			done[i] = done[i] || settled(parts[i], chosen, "")
		}
		rule := byKey[key]
		out = append(out, Suggestion{Rule: rule, Spares: spares[key], Also: rule.reach()})
	}
	return out
}

// settled reports whether every part has a rule among chosen and next.
func settled(parts [][]string, chosen map[string]bool, next string) bool {
	return !slices.ContainsFunc(parts, func(options []string) bool {
		return !slices.ContainsFunc(options, func(o string) bool { return chosen[o] || o == next })
	})
}

// reach is what a rule allows beyond what it was made from.
func (a *Always) reach() []string {
	switch {
	case a.Prefix:
		why := hazards[base(a.Argv[0])].why
		for n := 2; n <= len(a.Argv); n++ {
			if h, ok := hazards[strings.Join(a.Argv[:n], " ")]; ok {
				why = h.why
			}
		}
		if why == "" {
			why = "runs " + a.Argv[0]
		}
		return []string{"the same command with any further words", why}
	case strings.HasSuffix(a.Path, "/"):
		return []string{"every file below it but for .git, agents' and editors' settings and secrets"}
	}
	return nil
}
