package policy

import "strings"

// commandTable lists the commands that only read, with the flags that keep it
// so. What is left out: flags that write (-o), run a program (--pre,
// --compress-program, -l of diff), read a list of files from a file
// (--files0-from), or follow what nod cannot see.
func commandTable() map[string]*spec {
	return compileSpecs(map[string]*spec{
		// the design's list
		"ls": {short: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1", value: "ITw", operand: unlimited, anyFlag: true, lists: true,
			long: "all almost-all author escape block-size: ignore-backups color= directory dired classify= file-type format: full-time group-directories-first no-group human-readable si dereference dereference-command-line hide: hyperlink= indicator-style: inode ignore: kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: reverse recursive size sort: time: time-style: tabsize: width: context zero"},
		"cat": {short: "AbeEnstTuv", operand: unlimited, anyFlag: true,
			long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"},
		"head":  {short: "qvz", value: "nc", digits: true, operand: unlimited, anyFlag: true, long: "bytes: lines: quiet silent verbose zero-terminated"},
		"tail":  {short: "fFqrvz", value: "ncbs", digits: true, operand: unlimited, anyFlag: true, long: "bytes: lines: follow= retry quiet silent verbose sleep-interval: zero-terminated"},
		"pwd":   {short: "LP", long: "logical physical"},
		"echo":  {operand: unlimited, text: true, raw: true},
		"which": {short: "a", operand: unlimited, text: true, long: "all"},

		// shell words that do nothing
		"true": {level: levelReaders}, "false": {level: levelReaders}, ":": {level: levelReaders, raw: true, text: true},
		"sleep":   {level: levelReaders, operand: 1, check: checkSleep},
		"type":    {level: levelReaders, short: "atpP", operand: unlimited, text: true},
		"command": {level: levelReaders, operand: unlimited, text: true, short: "vV", ordered: true, check: checkCommandV},
		"printf":  {level: levelReaders, operand: unlimited, text: true, check: checkPrintf},

		// text
		"wc":   {level: levelReaders, short: "lcwmL", operand: unlimited, long: "bytes chars lines words max-line-length total:"},
		"sort": {level: levelReaders, short: "bdfgiMhnRrVcCmsuz", value: "kt", operand: unlimited, long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check= key: merge stable field-separator: unique zero-terminated"},
		"uniq": {level: levelReaders, short: "cdDiuz", value: "fsw", operand: 1, ordered: true, long: "count repeated all-repeated= skip-fields: ignore-case skip-chars: unique check-chars: zero-terminated group="},
		"cut":  {level: levelReaders, short: "nsz", value: "bcdf", operand: unlimited, long: "bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated"},
		"nl":   {level: levelReaders, short: "p", value: "bdfhilnsvw", operand: unlimited, long: "body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: join-blank-lines: number-format: no-renumber number-separator: starting-line-number: number-width:"},
		"tr":   {level: levelReaders, short: "cCdst", operand: 2, text: true, long: "complement delete squeeze-repeats truncate-set1"},
		"rev":  {level: levelReaders, operand: unlimited}, "tac": {level: levelReaders, short: "br", value: "s", operand: unlimited, long: "before regex separator:"},
		"paste":  {level: levelReaders, short: "sz", value: "d", operand: unlimited, long: "delimiters: serial zero-terminated"},
		"fold":   {level: levelReaders, short: "bs", value: "w", operand: unlimited, long: "bytes spaces width:"},
		"expand": {level: levelReaders, short: "i", value: "t", operand: unlimited, long: "initial tabs:"},
		"column": {level: levelReaders, short: "tx", value: "cs", operand: unlimited},
		"comm":   {level: levelReaders, short: "123", operand: 2, long: "check-order nocheck-order output-delimiter: total zero-terminated"},
		"cmp":    {level: levelReaders, short: "bls", operand: 2, long: "print-bytes verbose quiet silent"},
		"diff": {level: levelReaders, short: "abBcdeEiNpqrstTuwy", value: "CUWx", operand: 2,
			long: "normal brief report-identical-files context= unified= ed side-by-side width: left-column suppress-common-lines show-c-function recursive new-file ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines strip-trailing-cr text minimal color= no-dereference exclude:", check: checkDiff},
		"seq":  {level: levelReaders, short: "w", value: "s", operand: 3, text: true},
		"grep": grepSpec(), "egrep": grepSpec(), "fgrep": grepSpec(),
		"rg":  rgSpec(),
		"sed": {level: levelReaders, short: "nErsuz", value: "e", operand: unlimited, loose: true, script: "e", long: "quiet silent regexp-extended separate unbuffered null-data expression: posix sandbox", check: checkSed},
		"awk": {level: levelReaders, value: "F", operand: unlimited, loose: true, script: "-", ordered: true, check: checkAwk},
		"jq": {level: levelReaders, short: "rcnesSRjaCM", operand: unlimited, loose: true, script: "-", check: checkJq,
			long: "raw-output compact-output null-input exit-status slurp sort-keys raw-input join-output ascii-output color-output monochrome-output tab stream seq indent:"},

		// files
		"stat":     {level: levelReaders, short: "LtxsnFlqr", value: "cf", operand: unlimited, long: "dereference format: printf: terse file-system"},
		"file":     {level: levelReaders, short: "bhiLkNr", operand: unlimited, long: "brief mime mime-type mime-encoding dereference no-dereference no-pad raw keep-going"},
		"du":       {level: levelReaders, short: "abchHklLmsSx0", value: "dBIt", operand: unlimited, long: "all apparent-size block-size: bytes total dereference max-depth: human-readable inodes si summarize separate-dirs one-file-system threshold: exclude: time="},
		"df":       {level: levelReaders, short: "ahHiklPTm", value: "Bt", operand: unlimited, long: "all block-size: human-readable si inodes local output= portability total type: print-type"},
		"basename": {level: levelReaders, short: "az", value: "s", operand: unlimited, text: true, long: "multiple suffix: zero"},
		"dirname":  {level: levelReaders, short: "z", operand: unlimited, text: true, long: "zero"},
		"realpath": {level: levelReaders, short: "eLmPqsz", operand: unlimited, long: "canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero relative-to: relative-base:"},
		"readlink": {level: levelReaders, short: "efmnqsvz", operand: unlimited, long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"},
		"tree":     {level: levelReaders, short: "adfilxCAnsShpugDFQNtUrcvJX", value: "LPI", apart: true, operand: unlimited, long: "dirsfirst filesfirst noreport prune gitignore du si inodes filelimit: matchdirs ignore-case"},
		"md5sum":   {level: levelReaders, short: "bt", operand: unlimited}, "sha1sum": {level: levelReaders, short: "bt", operand: unlimited},
		"sha256sum": {level: levelReaders, short: "bt", operand: unlimited}, "cksum": {level: levelReaders, operand: unlimited},
		"shasum":  {level: levelReaders, short: "bt", value: "a", operand: unlimited, long: "algorithm: binary text"},
		"hexdump": {level: levelReaders, short: "bcCdovx", value: "ns", operand: unlimited},
		"od":      {level: levelReaders, short: "abcdfiloxsvx", value: "AjNtwS", operand: unlimited, long: "address-radix: skip-bytes: read-bytes: format: output-duplicates width="},
		"strings": {level: levelReaders, short: "a", value: "nt", operand: unlimited, long: "all bytes: radix:", check: checkStrings},

		// the machine
		"ps":     {level: levelReaders, short: "AefFjlw", value: "p", check: checkPs}, // not -u: of a user that there is not, ps -uxe shows environments
		"date":   {level: levelReaders, short: "uR", value: "d", tail: "I", operand: 1, text: true, long: "date: utc universal iso-8601= rfc-3339: rfc-email", check: checkDate},
		"whoami": {level: levelReaders}, "id": {level: levelReaders, short: "agGnruz", operand: 1, text: true},
		"uname": {level: levelReaders, short: "amnprsvio", long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system"},
		"arch":  {level: levelReaders}, "nproc": {level: levelReaders, long: "all"}, "hostname": {level: levelReaders},
		"uptime": {level: levelReaders, short: "ps"}, "free": {level: levelReaders, short: "bghkmtw"}, "tty": {level: levelReaders, short: "s"},
	})
}

func grepSpec() *spec {
	return &spec{level: levelReaders, short: "abcEFGhHiIlLnoPqrRsTUvVwxyzZ", value: "ABCem", digits: true,
		operand: unlimited, loose: true, script: "e", check: checkGrep,
		long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp: ignore-case no-ignore-case word-regexp line-regexp null-data no-messages invert-match max-count: byte-offset line-number line-buffered with-filename no-filename label: only-matching quiet silent binary-files: text recursive dereference-recursive include: exclude: exclude-dir: files-without-match files-with-matches count initial-tab null before-context: after-context: context: color= colour= unix-byte-offsets"}
}

func rgSpec() *spec {
	return &spec{level: levelReaders, short: "abcFHiIlLnNopPqsSUvVwx0.u", value: "ABCeEgjmMrtTd", operand: unlimited, loose: true, script: "e", check: checkRg,
		long: "after-context: before-context: context: regexp: fixed-strings ignore-case case-sensitive smart-case line-number no-line-number column no-column with-filename no-filename files files-with-matches files-without-match count count-matches include-zero invert-match word-regexp line-regexp only-matching multiline multiline-dotall pcre2 quiet glob: iglob: type: type-not: type-list max-count: max-columns: max-columns-preview max-depth: max-filesize: threads: replace: trim no-heading heading pretty color: colors: sort: sortr: stats json vimgrep null no-messages no-config text hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent follow one-file-system passthru passthrough engine: encoding: context-separator: field-match-separator: glob-case-insensitive crlf byte-offset no-unicode unrestricted"}
}

// paths are the words that may be files: the operands but for a leading script
// or pattern.
func (s *spec) paths(a *args) []word {
	if s.takesScript(a) {
		return a.operands[1:]
	}
	return a.operands
}

// scripts are the patterns or programs that a command is given.
func (s *spec) scripts(a *args) []string {
	var out []string
	for _, f := range a.flags {
		if s.script == "e" && f.name == "e" || f.name == "regexp" || f.name == "expression" {
			out = append(out, f.value)
		}
	}
	if len(out) == 0 && len(a.operands) > 0 {
		out = append(out, a.operands[0].text)
	}
	return out
}

func checkSleep(_ *scope, a *args) string {
	if len(a.operands) != 1 || len(a.operands[0].text) > 4 || strings.Trim(a.operands[0].text, "0123456789.") != "" {
		return "waits for something else than some seconds"
	}
	return ""
}

// checkPs allows numbers of processes: what is none has ps read its flags in
// another way, in which they show environments.
func checkPs(_ *scope, a *args) string {
	for _, f := range a.flags {
		if f.name == "p" && strings.Trim(f.value, "0123456789,") != "" {
			return "names a process by something else than its number"
		}
	}
	return ""
}

// checkStrings refuses @FILE, from which flags and names are read after -- too,
// and what is none is printed.
func checkStrings(_ *scope, a *args) string {
	for _, o := range a.operands {
		if o.lead || strings.HasPrefix(o.text, "@") {
			return "reads flags from a file"
		}
	}
	return ""
}

// checkCommandV allows command -v and -V; without them it runs its operands.
func checkCommandV(_ *scope, a *args) string {
	if len(a.flags) == 0 {
		return "runs another command"
	}
	return ""
}

// checkDate allows to print a date; an operand without + sets the clock.
func checkDate(_ *scope, a *args) string {
	if len(a.operands) == 1 && !strings.HasPrefix(a.operands[0].text, "+") {
		return "could set the clock"
	}
	return ""
}

// checkDiff allows to compare files. Given directories, diff prints what
// differs in each file of them, secrets too.
func checkDiff(_ *scope, a *args) string {
	if a.has("q", "brief") {
		return ""
	}
	if a.has("r", "recursive") {
		return "reads whole directories, in which secrets may lie"
	}
	for _, o := range a.operands {
		if o.text != "-" && !namesFile(o) {
			return "may read whole directories, in which secrets may lie"
		}
	}
	return ""
}
