package policy

import (
	"regexp"
	"slices"
	"strings"
)

// diffLong and diffShort are the flags of git's diff machinery that only
// shape output. Left out: --output writes, --ext-diff and --textconv run
// programs, --no-index reads outside the repository, -O reads a file.
const (
	diffLong = "patch no-patch raw patch-with-raw patch-with-stat stat= numstat shortstat dirstat= summary name-only name-status unified: indent-heuristic no-indent-heuristic minimal patience histogram diff-algorithm: anchored: compact-summary cumulative " +
		"color= no-color color-moved= no-color-moved color-moved-ws: word-diff= word-diff-regex: color-words= no-renames rename-empty no-rename-empty check full-index binary abbrev= break-rewrites= find-renames= find-copies= find-copies-harder irreversible-delete diff-filter: " +
		"pickaxe-all pickaxe-regex relative= no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: inter-hunk-context: function-context exit-code quiet no-ext-diff no-textconv ignore-submodules= " +
		"src-prefix: dst-prefix: no-prefix default-prefix line-prefix: output-indicator-new: output-indicator-old: output-indicator-context: ita-invisible-in-index merge-base cached staged base ours theirs combined-all-paths cc"
	diffShort = "puswbaRWzcm"
	diffTail  = "MCBXD"
	logLong   = diffLong + " follow no-follow decorate= no-decorate decorate-refs: decorate-refs-exclude: source mailmap no-mailmap use-mailmap full-diff log-size max-count: skip: since: after: until: before: author: committer: grep: all-match invert-grep regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp " +
		"merges no-merges min-parents: max-parents: first-parent all branches= tags= remotes= glob: exclude: ignore-missing cherry-mark cherry-pick left-only right-only cherry walk-reflogs merge boundary simplify-by-decoration full-history dense sparse simplify-merges ancestry-path= date-order author-date-order topo-order reverse " +
		"no-walk= do-walk pretty: format: abbrev-commit no-abbrev-commit oneline encoding: expand-tabs= no-expand-tabs notes= no-notes relative-date date: parents children left-right graph no-graph show-linear-break= diff-merges: no-diff-merges dd not remove-empty"
	logShort = diffShort + "gEFPirt"
	logValue = "UlSGIn"
)

// gitReads are the reading forms of git's subcommands.
func gitReads() map[string]*spec {
	log := spec{short: logShort, value: logValue + "L", tail: diffTail, digits: true, operand: unlimited, long: logLong, check: gitFormat}
	show, shortlog, reflog := log, log, log
	shortlog.level, shortlog.short, shortlog.tail, shortlog.long = levelReaders, "nsec", "w", "numbered summary email committer since: after: until: before: author: no-merges merges all group: format:"
	shortlog.value = ""
	reflog.level = levelReaders
	return compileSpecs(map[string]*spec{
		"status": {short: "sbvz", tail: "uM", operand: unlimited, long: "short branch show-stash porcelain= long verbose untracked-files= ignore-submodules= ignored= column= no-column ahead-behind no-ahead-behind renames no-renames find-renames= null"},
		"log":    &log, "show": &show,
		"diff": {short: diffShort, value: "UlSGI", tail: diffTail, operand: unlimited, long: diffLong, check: gitDiff},
		"branch": {text: true, short: "arvil", operand: unlimited, check: gitBranch,
			long: "all remotes verbose list show-current contains= no-contains= merged= no-merged= points-at: sort: format: color= no-color column= no-column abbrev= no-abbrev ignore-case omit-empty"},
		"shortlog": &shortlog, "reflog show": &reflog, "reflog": {level: levelReaders, value: "n", digits: true},
		"rev-parse":    {level: levelReaders, short: "q", operand: unlimited, long: "verify quiet short= abbrev-ref= symbolic symbolic-full-name show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all branches= tags= remotes= show-superproject-working-tree"},
		"ls-files":     {level: levelReaders, short: "cdmoistuvzk", value: "x", operand: unlimited, long: "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol error-unmatch full-name exclude: exclude-standard abbrev= deduplicate"},
		"ls-tree":      {level: levelReaders, short: "drtlz", operand: unlimited, long: "long name-only name-status full-name full-tree abbrev= object-only"},
		"blame":        {level: levelReaders, short: "bcefhklnpstw", value: "L", tail: "CM", operand: unlimited, long: "root show-stats porcelain line-porcelain show-name show-number show-email date: abbrev: color-lines color-by-age"},
		"cat-file":     {level: levelReaders, short: "epts", operand: 2},
		"describe":     {level: levelReaders, operand: unlimited, long: "all tags contains abbrev: candidates: exact-match long match: exclude: always first-parent dirty= broken="},
		"merge-base":   {level: levelReaders, short: "a", operand: unlimited, long: "all octopus independent is-ancestor fork-point"},
		"rev-list":     {level: levelReaders, value: "n", digits: true, operand: unlimited, long: "count all branches= tags= remotes= max-count: skip: since: after: until: before: author: no-merges merges first-parent left-right cherry-pick reverse topo-order date-order parents objects left-only right-only oneline abbrev-commit"},
		"name-rev":     {level: levelReaders, operand: unlimited, long: "tags name-only always all"},
		"for-each-ref": {level: levelReaders, operand: unlimited, long: "count: sort: format: points-at: merged= no-merged= contains= no-contains=", check: gitFormat},
		"grep": {level: levelReaders, short: "aiIwvhHEGFPnlLzocpWq", value: "eABCm", operand: unlimited, loose: true, script: "e",
			long: "text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count color= no-color break heading show-function after-context: before-context: context: function-context max-count: max-depth: cached and or not all-match quiet"},
		"remote": {level: levelReaders, short: "v", long: "verbose"}, "remote get-url": {level: levelReaders, operand: 1, long: "all push"},
		"tag":           {level: levelReaders, text: true, short: "l", tail: "n", operand: unlimited, long: "list sort: format: contains= no-contains= merged= no-merged= points-at: column= no-column color=", check: gitTag},
		"stash list":    {level: levelReaders, digits: true, long: "oneline stat"},
		"stash show":    {level: levelReaders, short: "pu", operand: 1, long: "stat patch name-only name-status"},
		"worktree list": {level: levelReaders, short: "vz", long: "porcelain verbose"},
		"check-ignore":  {level: levelReaders, short: "qvnz", operand: unlimited, long: "quiet verbose non-matching no-index"},
		"count-objects": {level: levelReaders, short: "vH", long: "verbose human-readable"},
	})
}

// git allows the reading forms of a repository in the project. Where its
// configuration names a program (core.fsmonitor, diff.external, a textconv),
// git runs it even so; Harden rewrites the command against that.
func (s *scope) git(words []word) (string, bool) {
	dirs := s.dirs
	for len(words) > 0 && strings.HasPrefix(words[0].text, "-") {
		switch opt := words[0]; {
		case opt.text == "--no-pager", opt.text == "-P", opt.text == "--no-optional-locks", opt.text == "--literal-pathspecs":
			words = words[1:]
		case opt.text == "-c" && len(words) > 1 && (words[1].text == noMonitor || words[1].text == noSignature): // as Harden writes
			words = words[2:]
		case opt.text == "-C" && s.pol.level >= levelReaders && len(words) > 1:
			if words[1].glob || !isAbs(slashes(words[1].text)) && !words[1].tilde || s.secretPath(words[1]) {
				return "-C does not name the project or a directory in it in full", false
			}
			dirs, words = s.resolve(words[1].text), words[2:]
			if len(dirs) == 0 {
				return "-C names a directory that nod does not know", false
			}
		case opt.text == "--version" && len(words) == 1:
			return "", false
		default:
			return opt.text + " before the subcommand can re-point git", false
		}
	}
	here := s.place
	here.dirs = dirs
	if !here.standsInProject() {
		return "reads a repository outside the project, whose configuration can run programs", false
	}
	if !here.standsAtTop() {
		// What a project holds may be somebody else's, and look like a repository
		// there: git takes its configuration, and what that says to run.
		return "a directory below the project may be a repository of its own, whose configuration can run programs: put -C and the project's path before the subcommand", false
	}
	if len(words) == 0 || words[0].glob {
		return "has no plain subcommand", false
	}
	sub, name := s.pol.git[words[0].text], words[0].text
	if len(words) > 1 && !words[1].glob && s.pol.git[name+" "+words[1].text] != nil {
		words = words[1:]
		name += " " + words[0].text
		sub = s.pol.git[name]
	}
	if sub == nil || sub.level > s.pol.level {
		return name + " is not a subcommand known to only read", false
	}
	a, why := sub.parse(name, words[1:])
	if why == "" && sub.check != nil {
		why = sub.check(s, &a)
	}
	operands, checked := a.operands, words[1:]
	if sub.loose {
		operands = sub.paths(&a)
		checked = operands
	}
	if sub.text {
		return why, false
	}
	for _, w := range checked {
		if s.gitSecret(w.text) {
			return "names a secret, " + w.text, true
		}
	}
	if why == "" {
		why = s.gitPaths(operands, &here)
	}
	return why, false
}

// gitSecret judges a word of git, which expands patterns by itself and takes
// REV:PATH and :(magic)PATH.
func (s *scope) gitSecret(t string) bool {
	if strings.HasPrefix(t, ":!") || strings.HasPrefix(t, ":^") || strings.HasPrefix(t, "--") && !strings.Contains(t, "=") {
		return false // leaves the path out
	}
	if i := strings.LastIndexByte(t, ')'); i >= 0 && strings.HasPrefix(t, ":(") {
		t = t[i+1:]
	}
	if i := strings.LastIndexByte(t, ':'); i >= 0 && i+1 < len(t) && s.secretIn(t[i+1:], true) {
		return true
	}
	for strings.HasSuffix(t, "/*") || strings.HasSuffix(t, "/**") {
		t = strings.TrimRight(t, "*/")
	}
	// Tracked files are meant to be shared: of the patterns, only those ask
	// that are about secrets, not every one that could match one.
	return !sourceGlob(t) && t != "*" && s.secretText(t, !strings.HasPrefix(t, "-"))
}

// gitPaths keeps git to the project: outside a repository, and given paths
// outside it, diff reads any file.
func (s *scope) gitPaths(words []word, here *place) string {
	for _, w := range words {
		t := w.text
		if strings.HasPrefix(t, ":(") && !strings.HasPrefix(t, ":(exclude)") && !strings.HasPrefix(t, ":(top)") {
			return "uses a path form that nod does not follow"
		}
		if !w.tilde && !isAbs(slashes(t)) && !strings.Contains("/"+slashes(t)+"/", "/../") {
			continue
		}
		all := here.resolve(t)
		if len(all) == 0 || slices.ContainsFunc(all, func(p string) bool { return !here.inTree(p) }) {
			return "names a path outside the project"
		}
	}
	return ""
}

var gitPretty = regexp.MustCompile(`^(?:|oneline|short|medium|full|fuller|reference|email|raw|mboxrd|t?format:.*|(?s:.*%.*))$`)

// gitFormat refuses formats that verify signatures, which runs gpg, names that
// the configuration may give such a format, and --remerge-diff by another name.
func gitFormat(_ *scope, a *args) string {
	for _, f := range a.flags {
		switch f.name {
		case "diff-merges":
			if f.value == "r" || f.value == "remerge" {
				return "merges once more, which can run a program"
			}
		case "format", "pretty":
			if strings.Contains(f.value, "%G") || strings.Contains(strings.ToLower(f.value), "signature") {
				return "its format verifies signatures, which runs a program"
			}
			if a.name != "branch" && a.name != "tag" && a.name != "for-each-ref" && !gitPretty.MatchString(f.value) {
				return "its format is a name from the configuration"
			}
		case "sort":
			if strings.Contains(strings.ToLower(f.value), "signature") {
				return "sorts by signatures, which runs a program"
			}
		}
	}
	return ""
}

// gitRevision is what is plainly no directory: a commit, by what it is counted
// from, its hash, its version, or the branch that everything goes into.
var gitRevision = regexp.MustCompile(`^(?:HEAD|@|main|master|develop|trunk|stash@.*|(?:origin|upstream)/.+|[0-9a-f]{7,64}|v?[0-9]+(?:\.[0-9]+)+.*|.*[~^:].*|.*[^./]\.\..*|.*\.\.[^./].*)$`)

// gitDiff refuses two words that may be directories: outside a repository git
// compares all files in them, secrets too.
func gitDiff(_ *scope, a *args) string {
	dirs := 0
	for _, o := range a.operands {
		if !gitRevision.MatchString(o.text) && !namesFile(o) {
			dirs++
		}
	}
	if len(a.operands) == 2 && dirs == 2 {
		return "compares whole directories outside a repository, in which secrets may lie: write commits as A..B, paths as HEAD -- A B"
	}
	return ""
}

// gitBranch allows listing only: a name is a branch to be made, unless --list
// makes it a pattern. Old versions of git take -l for something else.
func gitBranch(s *scope, a *args) string {
	if len(a.operands) > 0 && !a.has("list", "contains", "no-contains", "merged", "no-merged", "points-at") {
		return "could make a branch"
	}
	return gitFormat(s, a)
}

func gitTag(s *scope, a *args) string {
	if len(a.operands) > 0 && !a.has("l", "list", "contains", "no-contains", "merged", "no-merged", "points-at") {
		return "could make a tag"
	}
	return gitFormat(s, a)
}
