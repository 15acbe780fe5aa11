package commands

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// runnerFlags returns the lists of harmless flags of runners. With a harmless flag, a runner runs
// no other code, writes no file of the caller's choice, sends nothing away, and reads no other
// settings. nod asks about every other flag.
//
// The field outputs has the flags whose value is a file to write. The field plain has the flags whose
// value must be a plain name, because the runner would load a path as code. The words after the word
// -- belong to another program, and the field behind names the list of that program's flags.
func runnerFlags() map[string]*Command {
	return compile(map[string]*Command{
		"bd":            {short: "v", value: "alnpt", long: "json all long limit: status: priority: type: assignee: label: title: sort: verbose quiet"},
		"biome":         {long: "write fix apply reporter: diagnostic-level: max-diagnostics: colors: verbose changed staged", plain: "reporter"},
		"build_runner":  {short: "dv", long: "delete-conflicting-outputs verbose"},
		"rspec":         {short: "bcwE", value: "eft", long: "example: format: tag: fail-fast= seed: order: backtrace color no-color force-color only-failures next-failure profile= warnings dry-run", plain: "f format"},
		"rubocop":       {short: "aAlPD", value: "f", long: "autocorrect autocorrect-all auto-correct format: lint only: except: parallel no-parallel display-cop-names fail-level: color no-color", plain: "f format"},
		"cargo":         {short: "vq", value: "Fpj", long: "release lib bins bin: test: tests example: examples bench: benches all-targets all workspace package: exclude: features: all-features no-default-features profile: jobs: keep-going no-run no-fail-fast doc verbose quiet color: message-format: locked offline frozen ignore-rust-version no-deps document-private-items check", behind: "cargo --"},
		"cargo --":      {short: "q", value: "WADF", long: "nocapture no-capture show-output exact ignored include-ignored skip: list test-threads: color: quiet"},
		"cmake":         {short: "v", value: "j", long: "parallel: config: clean-first verbose", behind: "cmake --"},
		"cmake --":      {short: "ksnBiw", tail: "j", long: "silent keep-going jobs= dry-run", check: checkNoTarget},
		"ctest":         {short: "VNQ", value: "jREL", long: "output-on-failure rerun-failed timeout: repeat: progress stop-on-failure schedule-random no-tests= verbose extra-verbose quiet parallel: tests-regex: exclude-regex: label-regex: test-dir:"},
		"dart":          {value: "rnN", long: "reporter: name: plain-name: no-pub fatal-infos fatal-warnings no-fatal-infos no-fatal-warnings set-exit-if-changed coverage= tags: exclude-tags: concurrency: run-skipped release debug profile", plain: "r reporter"},
		"dotnet":        {oneDash: true, long: "c: v: f: configuration: verbosity: filter: framework: no-restore no-build nologo"},
		"eslint":        {value: "f", apart: true, long: "fix fix-dry-run ext: max-warnings: quiet cache no-cache format: color no-color report-unused-disable-directives no-error-on-unmatched-pattern", plain: "f format"},
		"go build":      goFlags("o: buildmode: msan asan"),
		"go doc":        {oneDash: true, long: "all c cmd short src u"},
		"go list":       goFlags("m f: deps test e u versions find compiled"),
		"go test":       goFlags("run: skip: bench: benchtime: benchmem count: timeout: short cpu: failfast json cover covermode: coverpkg: coverprofile: cpuprofile: memprofile: blockprofile: mutexprofile: trace: list: shuffle: vet: parallel: fullpath o:"),
		"go vet":        goFlags("json c:"),
		"gofmt":         {oneDash: true, long: "l d s w e"},
		"goimports":     {oneDash: true, long: "l d w e v local:"},
		"golangci-lint": {short: "vj", value: "ED", long: "fix timeout: verbose fast fast-only new-from-rev: enable: disable: enable-only: build-tags: tests= concurrency: color: max-issues-per-linter: max-same-issues: allow-parallel-runners"},
		"gradle":        {short: "sSidqm", value: "x", long: "tests: info debug stacktrace full-stacktrace quiet console: no-daemon daemon parallel no-parallel offline rerun-tasks continue dry-run build-cache no-build-cache warning-mode: configuration-cache no-configuration-cache exclude-task:"},
		"jest":          {short: "iou", value: "tw", apart: true, long: jestFlags},
		"just":          {short: "qnvu", long: "quiet dry-run verbose color: yes one unsorted highlight no-highlight"},
		"make":          {short: "ksnBiwqrRSd", tail: "jOl", long: "silent quiet keep-going jobs= dry-run just-print always-make ignore-errors no-print-directory print-directory output-sync= trace debug= no-builtin-rules no-keep-going warn-undefined-variables"},
		"mix":           {long: "trace only: exclude: include: seed: stale failed cover max-failures: slowest: color no-color timeout: warnings-as-errors"},
		"mvn":           {oneDash: true, long: "q quiet e errors X debug B batch-mode o offline T: threads: pl: projects: am also-make amd also-make-dependents fae ff fn fail-at-end fail-fast fail-never ntp no-transfer-progress N non-recursive Dtest= Dit.test= DskipTests= DskipITs= DfailIfNoTests= Dsurefire.failIfNoSpecifiedTests= Dstyle.color= DtrimStackTrace= Dmaven.test.skip="},
		"mypy":          {short: "vp", value: "m", long: "strict ignore-missing-imports show-error-codes hide-error-codes pretty no-pretty no-error-summary python-version: no-incremental follow-imports: namespace-packages explicit-package-bases show-column-numbers show-error-context no-color-output check-untyped-defs disallow-untyped-defs warn-unused-ignores warn-return-any verbose package: module:"},
		"npm":           {oneDash: true, long: "s silent if-present ws workspaces w: workspace: include-workspace-root ignore-scripts", behind: "script"},
		"npm ci":        {oneDash: true, long: "s silent no-audit no-fund prefer-offline offline ignore-scripts legacy-peer-deps omit: include:"},
		"phpunit":       {short: "v", long: "filter: testdox group: exclude-group: testsuite: stop-on-failure stop-on-error colors= verbose debug order-by: no-coverage"},
		"prettier":      {short: "clwu", apart: true, long: "check write list-different ignore-unknown log-level: loglevel: cache no-cache color no-color no-error-on-unmatched-pattern print-width: tab-width: single-quote no-semi trailing-comma: parser:", plain: "parser"},
		"pytest":        {short: "vqxsl", value: "kmrn", long: "verbose quiet exitfirst maxfail: tb: durations: durations-min: no-header no-summary last-failed lf failed-first ff new-first nf stepwise sw stepwise-skip collect-only co disable-warnings disable-pytest-warnings deselect: ignore: ignore-glob: showlocals no-showlocals color: capture: show-capture: setup-show setup-only fixtures markers strict-markers strict-config import-mode: cov= no-cov cov-branch cov-append cov-report: cov-fail-under: timeout: reruns: reruns-delay: numprocesses: dist: asyncio-mode: benchmark-skip benchmark-only snapshot-update junitxml: junit-xml: full-trace runxfail keepdb create-db reuse-db no-migrations", outputs: "junitxml junit-xml", plain: "cov-report"},
		"rake":          {short: "sqvnmA", value: "j", long: "silent quiet verbose dry-run multitask jobs: trace= all"},
		"ruff":          {short: "qves", long: "fix no-fix diff select: ignore: extend-select: extend-ignore: per-file-ignores: output-format: statistics no-cache quiet verbose silent exit-zero exit-non-zero-on-fix show-fixes line-length: target-version: preview no-preview check unsafe-fixes force-exclude", plain: "output-format"},
		"script":        {short: "iu", value: "tg", apart: true, long: jestFlags + " fix quiet grep: fgrep: max-warnings: check list-different noEmit noEmit= write", plain: "reporter"},
		"staticcheck":   {oneDash: true, long: "checks: tags: tests= f: go: explain: show-ignored fail:", plain: "f"},
		"swift":         {short: "vq", value: "c", long: "configuration: filter: skip: parallel no-parallel verbose quiet build-tests enable-code-coverage product: target: num-workers:", apart: true},
		"swiftlint":     {long: "strict quiet fix progress reporter: no-cache", plain: "reporter"},
		"task":          {short: "vsfnp", long: "silent verbose force dry parallel color="},
		"tox":           {short: "qvrp", value: "e", long: "recreate skip-missing-interpreters= parallel= quiet verbose", behind: "pytest"},
		"tsc":           {oneDash: true, long: "noEmit pretty p: project: w watch b build incremental skipLibCheck strict listFiles listEmittedFiles showConfig noUnusedLocals noUnusedParameters noImplicitAny allowJs checkJs esModuleInterop resolveJsonModule jsx: target: module: moduleResolution: lib: force dry verbose diagnostics extendedDiagnostics"},
		"vitest":        {short: "iu", value: "tw", apart: true, long: jestFlags, plain: "reporter"},
		"xcodebuild":    {oneDash: true, long: "quiet scheme: workspace: project: target: destination: configuration: sdk: parallel-testing-enabled: enableCodeCoverage: list showBuildSettings skipPackagePluginValidation"},
	})
}

const jestFlags = "ci coverage= bail= verbose= silent= watch= watchAll= run runInBand onlyChanged findRelatedTests testNamePattern: testPathPattern: testPathPatterns: maxWorkers: passWithNoTests passWithNoTests= detectOpenHandles forceExit no-cache colors color no-color no-coverage updateSnapshot update shard: listTests json testTimeout: expand changed= no-watch reporter: retry: browser= no-file-parallelism logHeapUsage"

// checkNoTarget refuses operands. It accepts a number, because the number may be the value of the flag -j.
func checkNoTarget(_ Secrets, a *Args) string {
	if slices.ContainsFunc(a.operands, func(o word.Word) bool { return !IsCount("-" + o.Text) }) {
		return "adds a target"
	}
	return ""
}

// goFlags returns the flags in the string own, and the flags that all build commands of go share.
func goFlags(own string) *Command {
	return &Command{oneDash: true, outputs: "o coverprofile cpuprofile memprofile blockprofile mutexprofile trace", check: checkGoFlags,
		long: own + " v n x a race tags: trimpath buildvcs= p: mod: ldflags! gcflags! work"}
}

// goLinkerFlags matches linker flags that only leave out symbols or set variables. Other linker
// flags may name a linker program, which go would run.
var goLinkerFlags = lazyregexp.New(`^(?:\s*(?:-s|-w|-X[ =][\w./-]+=[\w.:+/-]*))*\s*$`)

func checkGoFlags(_ Secrets, a *Args) string {
	for _, f := range a.flags {
		switch {
		case f.name == "ldflags" && !goLinkerFlags.MatchString(f.value):
			return "its linker flags may run a program"
		case f.name == "gcflags" && strings.Trim(strings.TrimPrefix(f.value, "all="), "-Nlm ") != "":
			return "its compiler flags are not known to be harmless"
		case f.name == "mod" && f.value != "readonly" && f.value != "vendor":
			return "may change go.mod"
		}
	}
	return ""
}

// outputFile matches files that only builds and tests write. Such a file is in a directory for outputs, or
// has a usual name of a report. A rule that allows a build must not let the build overwrite source code.
var outputFile = lazyregexp.New(`^(?:/dev/null|(?:\./)?(?:(?:bin|build|dist|out|target|coverage|tmp|reports|test-results)/(?:[\w-]+/)*[\w-]+(?:\.(?:out|prof|pprof|html|xml|json|exe|test|so|a|wasm))?|(?:c|cover|coverage|cpu|mem|block|mutex|trace|profile)[\w-]*\.(?:out|prof|pprof)|[\w-]*junit[\w-]*\.xml|coverage\.(?:html|xml|json)))$`)

// plainName matches a name that no program reads as a path.
var plainName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*$`)

// runnerLists returns the lists of flags, by runner. The caller must not change them.
var runnerLists = sync.OnceValue(runnerFlags)

// sharedLists maps a runner to another runner with the same flags.
var sharedLists = map[string]string{"./gradlew": "gradle", "flutter": "dart", "pnpm": "script", "yarn": "script", "bun": "script"}

// runnerList returns a runner's list of flags. It looks first for the list of all words of the
// runner's name, then of the last word, as in npx jest, and then of the first word. The list of an
// unknown runner is empty.
func runnerList(name []string) *Command {
	for _, key := range []string{strings.Join(name, " "), name[len(name)-1], name[0]} {
		if list := runnerLists()[cmp.Or(sharedLists[key], key)]; list != nil {
			return list
		}
	}
	return &unknownCommand
}

// keepsToProject reports whether the runner's list has all flags among the words after the runner.
// With such flags the command acts only in the project.
func keepsToProject(list *Command, words []string) bool {
	behind := []string(nil)
	if at := slices.Index(words, "--"); at >= 0 {
		words, behind = words[:at], words[at+1:]
	}
	if !list.allows(words) {
		return false
	}
	if other := runnerLists()[list.behind]; other != nil {
		return other.allows(behind)
	}
	return !slices.ContainsFunc(behind, func(w string) bool { return strings.HasPrefix(w, "-") })
}

// allows reports whether every flag among the words is in the list c, with a harmless value.
func (c *Command) allows(words []string) bool {
	open := *c
	open.operands = unlimited
	a, why := open.Check("", word.Literals(words), nil)
	return why == "" && !slices.ContainsFunc(a.flags, func(f flag) bool {
		named := func(list string) bool { return slices.Contains(strings.Fields(list), f.name) }
		return named(c.outputs) && !outputFile.MatchString(f.value) || named(c.plain) && !plainName.MatchString(f.value)
	})
}
