package commands

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

// addition lists flags that a runner may have in a container, besides the flags in runnerFlags. The
// kernel limits the runner to the project. The runner may therefore read all files of the project
// as settings or code, and write files if no work is lost.
type addition struct {
	flags string // flags in the notation of Command.long; a name of one letter is also a short flag
	reads string // flags whose value is a file or a directory to read
	out   string // flags whose value is a file or a directory to write
	rest  string // the word after which the words of another program follow; "*" means that they begin at the first word that is no flag
	base  string // the list in runnerFlags that the addition extends; if empty, the list with the addition's name
}

func additions() map[string]addition {
	return map[string]addition{
		"go build":      {flags: "pgo: C:", rest: "", out: "o"},
		"go test":       {flags: "c C: fuzz: fuzztime: fuzzminimizetime: pgo: fullpath", out: "outputdir", rest: "-args"},
		"go vet":        {flags: "C:"},
		"go list":       {flags: "C: json= export compiled"},
		"go run":        {flags: "C:", base: "go build", rest: "*"},
		"go generate":   {flags: "run: skip: C:", base: "go vet"},
		"go fmt":        {flags: "n x mod:", base: "gofmt"},
		"go clean":      {flags: "cache testcache n x", base: "gofmt"},
		"go mod":        {flags: "json m", base: "gofmt"},
		"go version":    {flags: "m v", base: "gofmt"},
		"go tool":       {base: "gofmt", rest: "*"},
		"cargo":         {flags: "target: timings fix allow-dirty allow-staged ignored show-output nocapture V version help no-default-features depth: edges: i: invert: format-version: filter-platform: duplicates d prefix:", reads: "manifest-path", out: "target-dir artifact-dir"},
		"cargo run":     {flags: "target:", reads: "manifest-path", out: "target-dir", base: "cargo", rest: "--"},
		"cmake":         {flags: "build: D: G: U: W: t: target: preset: trace-expand version L LA N fresh", reads: "S", out: "B"},
		"ctest":         {flags: "C: build-config: preset: I: output-on-failure", base: "ctest"},
		"dart":          {flags: "flavor: dart-define: output-dir: no-sound-null-safety", reads: "t target", out: "o output"},
		"dart run":      {base: "dart", rest: "*"},
		"dotnet":        {flags: "logger: l: collect: p: nologo", reads: "s settings", out: "o output results-directory"},
		"eslint":        {flags: "no-eslintrc fix-type: rule: env: global: stats debug no-inline-config version v", reads: "c config ignore-path rulesdir resolve-plugins-relative-to", out: "o output-file cache-location cache-file"},
		"golangci-lint": {flags: "out-format: presets: p: D: E: no-config exclude: e: skip-dirs: modules-download-mode: sort-results", reads: "c config", out: "path-prefix"},
		"gradle":        {flags: "P: scan no-scan refresh-dependencies profile version v", reads: "p project-dir b build-file"},
		"jest":          {flags: "env: i b f o clearMocks verbose logHeapUsage ci json version v", reads: "c config rootDir selectProjects", out: "coverageDirectory outputFile cacheDirectory"},
		"just":          {flags: "l list summary dump evaluate show: s: version", reads: "f justfile d working-directory"},
		"make":          {flags: "p print-data-base version v t touch e environment-overrides L", reads: "f file makefile C directory I include-dir o W"},
		"mvn":           {flags: "P: activate-profiles: U v version", reads: "f file"},
		"mypy":          {flags: "no-warn-no-return disallow-any-generics explicit-package-bases disable-error-code: enable-error-code: no-implicit-optional warn-unused-configs exclude: platform: show-traceback", reads: "config-file", out: "cache-dir junit-xml html-report"},
		"npm":           {flags: "version help all depth: long parseable production include: omit: l a", reads: "prefix"},
		"npm pack":      {flags: "dry-run json silent", base: "gofmt", out: "pack-destination"},
		"phpunit":       {flags: "coverage-text stop-on-warning colors process-isolation version", reads: "c configuration bootstrap", out: "log-junit coverage-html coverage-clover"},
		"prettier":      {flags: "no-config no-editorconfig end-of-line: version v tab-width: use-tabs config-precedence: stdin-filepath:", reads: "config ignore-path plugin", out: "cache-location"},
		"pytest":        {flags: "p: W: log-cli-level: log-level: log-cli= pyargs doctest-modules cache-show= cache-clear h help version V headed browser: cov-context: timeout-method: forked randomly-seed: hypothesis-show-statistics", reads: "c rootdir confcutdir cov-config", out: "basetemp log-file html json-report-file"},
		"rake":          {flags: "T tasks P", reads: "f rakefile"},
		"rspec":         {flags: "P: pattern: version", reads: "r require I O options", out: "o out"},
		"rubocop":       {flags: "S version", reads: "c config", out: "o out"},
		"ruff":          {flags: "select: fixable: unfixable: add-noqa isolated version help watch", reads: "config exclude extend-exclude", out: "cache-dir output-file o"},
		"script":        {flags: "r recursive w workspace-root if-present silent s parallel stream no-bail version v filter= F: filter: bail prod production watch hot smol only help h host port: minify sourcemap= format: splitting external: define: compile production", reads: "C dir cwd config c project p preload", out: "outdir outfile outDir coverageDirectory coverage-dir outputFile"},
		"swift":         {flags: "disable-sandbox Xswiftc: arch: sdk: triple: version enable-test-discovery xunit-output:", reads: "package-path", out: "build-path scratch-path"},
		"task":          {flags: "l list a list-all w watch y yes summary status version o: output: c C: concurrency:", reads: "t taskfile d dir"},
		"tox":           {flags: "l listenvs a parallel-no-spinner version", reads: "c conf", rest: "--"},
		"tsc":           {flags: "version v help h all init declaration emitDeclarationOnly sourceMap inlineSourceMap removeComments preserveWatchOutput types: downlevelIteration moduleDetection: allowImportingTsExtensions strictNullChecks noEmitOnError isolatedModules experimentalDecorators explainFiles traceResolution clean", reads: "rootDir rootDirs baseUrl typeRoots", out: "outDir outFile declarationDir tsBuildInfoFile generateTrace generateCpuProfile out"},
		"vitest":        {flags: "bail: mode: environment: globals typecheck.enabled= ui= coverage.enabled= coverage.provider: coverage.reporter: pool: sequence.shuffle no-coverage project: version v", reads: "c config r root dir", out: "outputFile coverage.reportsDirectory"},
		"xcodebuild":    {flags: "version showsdks only-testing: skip-testing: testPlan: enableAddressSanitizer: allowProvisioningUpdates skipMacroValidation", out: "derivedDataPath resultBundlePath"},
		"ninja":         {flags: "v verbose quiet n j: k: l: d: w: version", reads: "C f", base: "just"},
	}
}

type containedList struct {
	*Command
	addition
}

// containedLists returns the flags of runners in a container. The caller must not change them.
var containedLists = sync.OnceValue(func() map[string]containedList {
	lists, all := map[string]containedList{}, runnerFlags()
	extended := map[string]*Command{}
	adds := additions()
	for name := range all {
		if _, ok := adds[name]; !ok && name != "bd" { // the list of bd, a program for notes, has only subcommands that read
			adds[name] = addition{}
		}
	}
	for name, add := range adds {
		base := *all[cmp.Or(add.base, name)]
		if base.operands = unlimited; len(add.flags) > 0 {
			base.plain = ""
		}
		for flag := range strings.FieldsSeq(add.flags + " " + values(add.reads) + " " + values(add.out)) {
			base.addFlagName(flag)
		}
		extended[name] = &base
		lists[name] = containedList{&base, add}
	}
	compile(extended)
	return lists
})

func values(names string) string {
	var b strings.Builder
	for name := range strings.FieldsSeq(names) {
		b.WriteString(name + ": ")
	}
	return b.String()
}

// addFlagName adds a flag, which is written as in the field long.
func (c *Command) addFlagName(flag string) {
	name := strings.TrimRight(flag, "=:")
	if len(name) == 1 && !c.oneDash {
		c.short = strings.ReplaceAll(c.short, name, "")
		c.value = strings.ReplaceAll(c.value, name, "")
		if c.tail = strings.ReplaceAll(c.tail, name, ""); strings.HasSuffix(flag, ":") {
			c.value += name
		} else {
			c.short += name
		}
		return
	}
	c.long += " " + flag
}

// Output is a file or a directory that a command writes because of a flag.
type Output struct{ Flag, Path string }

// ContainedFlags compares a runner's words with the list of flags that lose no work in a container.
// It returns the files and directories that the runner's flags make it write, and the reason to
// ask, or "". If nod has no list for the runner, known is false.
func ContainedFlags(name, words []string) (writes []Output, why string, known bool) {
	list, ok := findContainedList(name)
	if !ok {
		return nil, "", false
	}
	switch at := slices.Index(words, list.rest); {
	case list.rest == "*":
		if at = slices.IndexFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") }); at >= 0 {
			words = words[:at]
		}
	case list.rest != "" && at >= 0:
		words = words[:at]
	}
	behind := []string(nil)
	if at := slices.Index(words, "--"); at >= 0 {
		words, behind = words[:at], words[at+1:]
	}
	a, why := list.Check(strings.Join(name, " "), word.Literals(words), nil)
	if why != "" {
		return nil, why, true
	}
	writes = list.writes(&a)
	if !slices.ContainsFunc(behind, func(w string) bool { return strings.HasPrefix(w, "-") }) {
		return writes, "", true
	}
	other, ok := containedLists()[list.behind]
	if !ok || list.behind == "" {
		return nil, "passes flags to a program that nod does not know", true
	}
	if a, why = other.Check("", word.Literals(behind), nil); why != "" {
		return nil, why, true
	}
	return append(writes, other.writes(&a)...), "", true
}

// writes returns the files and directories that a runner's flags make it write.
func (l containedList) writes(a *Args) (out []Output) {
	for _, f := range a.flags {
		if slices.Contains(strings.Fields(l.out+" "+l.outputs), f.name) {
			out = append(out, Output{f.name, f.value})
		}
	}
	return out
}

func findContainedList(name []string) (containedList, bool) {
	for n := len(name); n > 0; n-- {
		key := strings.Join(name[:n], " ")
		if list, ok := containedLists()[cmp.Or(sharedLists[key], key)]; ok {
			return list, true
		}
	}
	return containedList{}, false
}
