package commands

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// gitRule lists the flags that a rule such as Bash(git commit:*) covers although the rule does not
// name them. With these flags git starts no other program, writes no other file, signs nothing, and
// reads no other configuration. The rule must name every other flag.
type gitRule struct {
	*Command
	verbs string // the covered second subcommands, such as list in git notes list
}

const (
	gitTransport = " 4 6 ipv4 ipv6 progress no-progress quiet verbose"
	gitMerge     = " ff ff-only squash commit edit stat summary log= autostash allow-unrelated-histories cleanup: rerere-autoupdate"
	gitPathspecs = " pathspec-from-file: pathspec-file-nul"
	gitDiffMore  = " raw stat-width: stat-name-width: stat-graph-width: stat-count: dirstat-by-file= patch-with-raw ws-error-highlight: rotate-to: skip-to: find-object: ita-visible-in-index submodule="
	gitLogMore   = " bisect reflog grep-reflog: alternate-refs max-age: min-age: since-as-filter: show-pulls clear-decorations reverse remove-empty"
)

// gitRules returns the lists by subcommand. The caller must not change them.
var gitRules = sync.OnceValue(func() map[string]gitRule {
	rules := map[string]gitRule{}
	for name, c := range table() {
		if sub, ok := strings.CutPrefix(name, "git "); ok && !strings.Contains(sub, " ") && c.level != levelNone && !c.Special {
			own := *c
			rules[sub] = gitRule{Command: &own}
		}
	}
	for name, more := range map[string]struct{ short, value, tail, long, verbs string }{
		"add":             {short: "nvipefuNA", long: "interactive patch edit force update renormalize all ignore-removal refresh ignore-errors ignore-missing sparse chmod: no-all" + gitPathspecs},
		"am":              {short: "i3qsukmcr", value: "Cp", long: "interactive 3way quiet signoff utf8 keep keep-non-patch message-id keep-cr no-keep-cr scissors quoted-cr: whitespace: ignore-space-change ignore-whitespace exclude: include: patch-format: reject resolvemsg: continue resolved skip abort quit show-current-patch= allow-empty committer-date-is-author-date ignore-date rerere-autoupdate empty:"},
		"apply":           {short: "Nz3Rvq", value: "pC", long: "exclude: include: no-add stat numstat summary check index intent-to-add cached apply 3way whitespace: ignore-space-change ignore-whitespace reverse unidiff-zero reject allow-overlap verbose quiet inaccurate-eof recount directory: allow-empty"},
		"archive":         {short: "vl0123456789", long: "format: prefix: worktree-attributes verbose list"},
		"bisect":          {long: "term-new: term-old: term-good: term-bad: no-checkout first-parent", verbs: "start bad good new old terms skip reset log next visualize view"},
		"blame":           {long: "incremental ignore-rev: score-debug minimal indent-heuristic reverse first-parent"},
		"bundle":          {short: "q", long: "quiet", verbs: "verify list-heads"},
		"branch":          {short: "vqtradDmMcClfi", value: "u", long: "quiet track= set-upstream-to: unset-upstream delete move copy create-reflog edit-description force recurse-submodules"},
		"cat-file":        {long: "batch= batch-check= batch-all-objects follow-symlinks allow-unknown-type"},
		"checkout":        {short: "lqmdtf23p", value: "bB", long: "guess overlay quiet recurse-submodules= progress merge conflict: detach track= force orphan: overwrite-ignore ignore-other-worktrees ours theirs patch ignore-skip-worktree-bits" + gitPathspecs},
		"cherry":          {short: "v", long: "abbrev= verbose"},
		"cherry-pick":     {short: "nesx", value: "mX", long: "quit continue abort skip cleanup: no-commit edit signoff mainline: rerere-autoupdate strategy-option: ff allow-empty allow-empty-message keep-redundant-commits"},
		"clean":           {short: "qnfidxX", value: "e", long: "quiet dry-run force interactive exclude:"},
		"clone":           {short: "vqnls46", value: "job", long: "reject-shallow no-checkout bare mirror local no-hardlinks shared recurse-submodules= recursive= jobs: dissociate origin: branch: depth: shallow-since: shallow-exclude: single-branch no-tags shallow-submodules filter: also-filter-submodules remote-submodules sparse" + gitTransport},
		"commit":          {short: "qvseaiponz", value: "FmcCt", tail: "u", long: "quiet verbose file: author: date: message: reedit-message: reuse-message: fixup: squash: reset-author trailer: signoff template: edit cleanup: status all include interactive patch only no-verify dry-run short branch ahead-behind porcelain long null amend no-post-rewrite untracked-files= no-edit allow-empty allow-empty-message" + gitPathspecs},
		"diff":            {value: "O", long: gitDiffMore},
		"fetch":           {short: "vqaftmnpPku46", value: "jo", long: "all set-upstream append atomic force multiple tags jobs: prefetch prune prune-tags recurse-submodules= dry-run write-fetch-head keep update-head-ok depth: shallow-since: shallow-exclude: deepen: unshallow refetch update-shallow refmap: server-option: negotiation-tip: negotiate-only filter: auto-maintenance auto-gc show-forced-updates write-commit-graph stdin" + gitTransport},
		"format-patch":    {short: "nNskpq", value: "v", long: "numbered no-numbered signoff stdout cover-letter numbered-files suffix: start-number: reroll-count: filename-max-length: rfc subject-prefix: keep-subject no-binary zero-commit no-stat add-header: to: cc: from= in-reply-to: attach= inline= thread= signature: base: quiet progress range-diff: creation-factor: force-in-body-from"},
		"fsck":            {short: "v", long: "verbose unreachable dangling tags root cache reflogs full connectivity-only strict progress name-objects"},
		"gc":              {short: "q", long: "quiet prune= cruft aggressive auto force keep-largest-pack"},
		"init":            {short: "q", value: "b", long: "bare shared= quiet initial-branch: object-format:"},
		"log":             {value: "O", long: gitDiffMore + gitLogMore},
		"ls-remote":       {short: "qth", value: "o", long: "quiet tags heads refs get-url sort: exit-code symref server-option:"},
		"merge":           {short: "nevq", value: "mXF", long: "verbose quiet no-verify abort quit continue progress overwrite-ignore signoff into-name: message: file: strategy-option:" + gitMerge},
		"mv":              {short: "vnfk", long: "verbose dry-run force sparse"},
		"notes":           {short: "fnvq", value: "mFcC", long: "ref: message: file: reuse-message: reedit-message: allow-empty force verbose quiet", verbs: "list add copy append edit show merge remove prune get-ref"},
		"pull":            {short: "vqnaftpk46", tail: "rj", value: "Xo", long: "recurse-submodules= rebase= signoff= verify all append force tags prune jobs= dry-run keep depth: shallow-since: shallow-exclude: deepen: unshallow update-shallow refmap: server-option: negotiation-tip: show-forced-updates set-upstream strategy-option:" + gitTransport + gitMerge},
		"push":            {short: "vqdnfu46", value: "o", long: "repo: all branches mirror delete tags dry-run porcelain force force-with-lease= force-if-includes recurse-submodules: thin set-upstream prune no-verify follow-tags atomic push-option:" + gitTransport},
		"range-diff":      {long: "creation-factor: no-dual-color notes= left-only right-only no-patch patch stat name-only name-status"},
		"rebase":          {short: "qvnfmi", value: "CX", tail: "r", long: "onto: keep-base no-verify quiet verbose no-stat signoff committer-date-is-author-date reset-author-date ignore-whitespace whitespace: force-rebase no-ff continue skip abort quit edit-todo show-current-patch apply merge interactive rerere-autoupdate empty: autosquash update-refs autostash rebase-merges= fork-point strategy-option: root reschedule-failed-exec reapply-cherry-picks stat"},
		"reflog":          {short: "n", long: "all dry-run verbose expire: expire-unreachable: updateref rewrite stale-fix date: oneline", verbs: "show expire delete exists"},
		"remote":          {short: "vfp", value: "tm", long: "verbose fetch tags track: master: mirror= prune push all add delete dry-run auto progress", verbs: "add rename remove rm set-head set-branches get-url set-url show prune update"},
		"reset":           {short: "qpN", long: "quiet no-refresh mixed soft hard merge keep recurse-submodules= patch intent-to-add" + gitPathspecs},
		"restore":         {short: "SWqm23p", value: "s", long: "source: staged worktree ignore-unmerged overlay quiet recurse-submodules= progress merge conflict: ours theirs patch ignore-skip-worktree-bits" + gitPathspecs},
		"rev-parse":       {long: "not default: branches= show-object-format= git-path: is-shallow-repository"},
		"revert":          {short: "nes", value: "mX", long: "quit continue abort skip cleanup: no-commit edit signoff mainline: rerere-autoupdate strategy-option: reference"},
		"rm":              {short: "nqfr", long: "dry-run quiet cached force ignore-unmatch sparse" + gitPathspecs},
		"show":            {value: "O", long: gitDiffMore + gitLogMore},
		"show-ref":        {short: "dqs", long: "tags heads verify head dereference hash= abbrev= quiet exclude-existing="},
		"sparse-checkout": {long: "cone sparse-index skip-checks", verbs: "init list set add reapply disable"},
		"stash":           {short: "pSkqua", value: "m", long: "patch staged keep-index quiet include-untracked all message: index only-untracked oneline stat name-only name-status" + gitPathspecs, verbs: "list show drop pop apply branch push save clear create store"},
		"submodule":       {short: "fqN", value: "bj", long: "quiet cached branch: force name: recursive init remote no-fetch checkout merge rebase depth: jobs: single-branch recommend-shallow all default files summary-limit: progress", verbs: "add status init deinit update set-branch set-url summary sync absorbgitdirs"},
		"switch":          {short: "qmdtf", value: "cC", long: "create: force-create: guess discard-changes quiet recurse-submodules= progress merge conflict: detach track= force orphan: overwrite-ignore ignore-other-worktrees"},
		"tag":             {short: "ldaefi", value: "mF", long: "delete annotate message: file: edit cleanup: force create-reflog ignore-case"},
		"worktree":        {short: "fdqnv", value: "bB", long: "force detach checkout lock reason: quiet track guess-remote porcelain verbose expire: dry-run orphan", verbs: "add list lock move prune remove repair unlock"},
	} {
		r := rules[name]
		if r.Command == nil {
			r.Command = &Command{}
		}
		c := *r.Command
		c.short, c.value, c.tail = without(c.short, more.value+more.tail)+more.short, without(c.value, more.short+more.tail)+more.value, without(c.tail, more.short+more.value)+more.tail
		c.long += " " + more.long
		rules[name] = gitRule{&c, more.verbs}
	}
	compile(maps.Collect(func(yield func(string, *Command) bool) {
		for name, r := range rules {
			if !yield(name, r.Command) {
				return
			}
		}
	}))
	return rules
})

func without(letters, drop string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(drop, r) {
			return -1
		}
		return r
	}, letters)
}

// GitBounded reports whether a rule covers all subcommands and flags among the words after git.
// Each must be on a list, or the rule itself must contain it. The words after -- must also pass
// this check, because git may read the word -- as the value of a flag.
func GitBounded(words []string, spelled func(word string) bool) bool {
	harmless := []string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--version"}
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if !spelled(words[0]) && !slices.Contains(harmless, words[0]) {
			return false // an option before the subcommand can change what git runs
		}
		words = words[1:]
	}
	if len(words) == 0 {
		return true
	}
	rule, ok := gitRules()[words[0]]
	if !ok {
		return !slices.ContainsFunc(words, func(w string) bool { return !spelled(w) })
	}
	verb := rule.verbs == ""
	value := false // whether the word is the value of the previous flag
	for _, w := range words[1:] {
		switch {
		case value:
			value = false
		case w == "--" || w == "-":
		case strings.HasPrefix(w, "-"):
			var known bool
			if known, value = rule.takes(w); !known && !spelled(w) {
				return false
			}
		case !verb && !spelled(w) && !slices.Contains(strings.Fields(rule.verbs), w):
			return false
		default:
			verb = true
		}
	}
	return true
}

// takes reports whether a flag is listed, and whether the next word is its value.
func (c gitRule) takes(flag string) (known, next bool) {
	if long, ok := strings.CutPrefix(flag, "--"); ok {
		name, _, eq := strings.Cut(long, "=")
		kind, listed := c.longs[name]
		if bare, no := strings.CutPrefix(name, "no-"); no && !listed {
			_, listed = c.longs[bare]
			return listed && !eq, false
		}
		return listed, kind == ':' && !eq
	}
	if c.digits && IsCount(flag) {
		return true, false
	}
	for i := 1; i < len(flag); i++ {
		switch l := flag[i]; {
		case strings.IndexByte(c.short, l) >= 0:
		case strings.IndexByte(c.tail, l) >= 0:
			return true, false
		case strings.IndexByte(c.value, l) >= 0:
			return true, i == len(flag)-1
		default:
			return false, false
		}
	}
	return true, false
}
