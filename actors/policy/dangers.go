package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// TextKind is the kind of a text in a call's input. It decides how Dangers reads the text.
type TextKind int

const (
	FileText    TextKind = iota // any text that is neither a command line nor a plan, such as the content of a file
	CommandText                 // a command line, with its here-documents
	PlanText                    // an agent's plan
)

// Danger is a line of a text that does grave harm by itself, or that plans grave harm. The first line is Line
// 1. From is the offset, in bytes, of the harm in the line.
type Danger struct {
	Line, From int
	Why        []string
}

// Dangers returns the lines of a text that a person must look at first. It judges each line by itself, with
// the reasons that also describe the risk of a call. It may miss a harm, so the other lines need not be
// harmless. It stops early at a limit; the result searched is the number of lines that it has read.
func Dangers(lines []string, kind TextKind) (all []Danger, searched int) {
	p := anyPolicy()
	if p == nil {
		return nil, 0
	}
	search := dangerSearch{policy: p, kind: kind, location: pathname.Locate("/project", "/project", "/home/user"), left: maxSearched}
	for i := 0; i < len(lines); {
		last := i
		for kind != PlanText && last+1 < len(lines) && last-i < maxJoined && continues.MatchString(lines[last]) {
			last++
		}
		text := strings.Join(lines[i:last+1], "\n")
		if kind == PlanText && isFence(text) {
			search.inFence = !search.inFence
			text = ""
		}
		if len(all) >= maxDangers {
			return all, i
		}
		from, why := search.line(text)
		for k := i; k <= last && len(why) > 0; k++ {
			all, from = append(all, Danger{k + 1, min(from, len(lines[k])), why}), 0
		}
		if search.left <= 0 {
			return all, i
		}
		i = last + 1
	}
	return all, len(lines)
}

const (
	maxDangers  = 200
	maxJoined   = 20       // the largest number of continuation lines that are joined to one line
	maxWhole    = 160      // the longest line or command, in bytes, that a Danger shows from its beginning
	beforeWord  = 8        // the number of bytes that a Danger shows before the first word of the harm in a longer command
	maxText     = 1 << 10  // the largest text, in bytes, that is judged at once
	maxSearched = 16 << 10 // the total length, in bytes, of the texts that one search judges
)

// anyPolicy returns a policy without rules, because the harm of a line depends on no rule.
var anyPolicy = sync.OnceValue(func() *Policy {
	p, err := New(schemas.Permissions{})
	if err != nil {
		return nil
	}
	return p
})

// continues matches a line that goes on in the next line.
var continues = lazyregexp.New(`(?:\\|\||&&)[ \t]*$`)

// pieceEnd matches the end of a command in a long line.
var pieceEnd = lazyregexp.New(`;+|&&|\|\||\n`)

// dangerSearch is the search of one text for lines with grave harms.
type dangerSearch struct {
	policy   *Policy
	kind     TextKind
	location pathname.Location
	inFence  bool // the search is inside a block of code of a plan
	left     int  // the length, in bytes, of the texts that the search may still judge
}

// line returns the reasons for the grave harms of one line. In a long line, from is the offset of
// the first harm.
func (s *dangerSearch) line(text string) (from int, why []string) {
	at := 0
	for _, chunk := range chunks(text) {
		found := s.harms(chunk)
		if len(found) > 0 && len(why) == 0 && len(text) > maxWhole {
			from = at + s.harmAt(chunk)
		}
		for _, reason := range found {
			if !slices.Contains(why, reason) {
				why = append(why, reason)
			}
		}
		at += len(chunk)
	}
	return from, why
}

// harmAt returns the offset of the first command in a text that does grave harm by itself, or else 0.
func (s *dangerSearch) harmAt(text string) int {
	at := 0
	for _, piece := range piecesOf(text) {
		if len(s.harms(piece)) > 0 {
			if len(piece) > maxWhole {
				return at + max(0, graveWord(piece)-beforeWord)
			}
			return at + len(piece) - len(strings.TrimLeft(piece, " \t"))
		}
		at += len(piece)
	}
	return 0
}

// chunks splits a text into parts of at most maxText bytes, because judging a long command line is slow. If
// possible, it splits between two commands.
func chunks(text string) (all []string) {
	if len(text) <= maxText {
		return []string{text}
	}
	from, to := 0, 0
	for _, piece := range piecesOf(text) {
		if to > from && to-from+len(piece) > maxText {
			all, from = append(all, text[from:to]), to
		}
		for to += len(piece); to-from > maxText; from += maxText {
			all = append(all, text[from:from+maxText])
		}
	}
	return append(all, text[from:])
}

// piecesOf splits a text after the ends of its commands.
func piecesOf(text string) []string {
	var all []string
	at := 0
	for _, end := range pieceEnd().FindAllStringIndex(text, -1) {
		all, at = append(all, text[at:end[1]]), end[1]
	}
	return append(all, text[at:])
}

// harms returns the reasons for the grave harms of a text.
func (s *dangerSearch) harms(text string) (why []string) {
	if s.left <= 0 || graveWord(text) < 0 {
		return nil
	}
	s.left -= len(text)
	if s.kind == PlanText {
		if s.inFence {
			text = "```\n" + text + "\n```"
		}
		return s.policy.judgePlan(text, s.location).Reasons
	}
	add := func(reason string) {
		if !slices.Contains(why, reason) && saysEnough(reason, text, s.kind) {
			why = append(why, reason)
		}
	}
	for _, line := range linesIn(text, s.kind) {
		for _, reason := range s.policy.shell.Judge(commands.ShellCode, line, s.location).Grave {
			add(reason)
		}
	}
	for _, lang := range []commands.Language{commands.SQLCode, commands.ProgramCode} {
		for _, found := range commands.CodeFindings(lang, text) {
			if found.Risk == schemas.RiskHigh {
				add(found.Why)
			}
		}
	}
	for i := range graveWords {
		if graveWords[i].expr.MatchString(text) {
			add(graveWords[i].why)
		}
	}
	begins := func(begin string) bool {
		return slices.ContainsFunc(why, func(reason string) bool { return strings.HasPrefix(reason, begin) })
	}
	return slices.DeleteFunc(slices.Clone(why), func(reason string) bool { // a more precise reason replaces a reason that says less
		return reason == sendsData && (begins("sends secrets") || begins("uploads ")) || slices.Contains(vagueReasons, reason) && begins("runs code downloaded ")
	})
}

// linesIn returns the parts of a line that may be command lines. In a file, a command line may be in quotes,
// or follow a list mark or the word run.
func linesIn(text string, kind TextKind) []string {
	if kind != FileText {
		return []string{text}
	}
	all := []string{lead.ReplaceAllString(text, "")}
	for _, m := range inQuotes.FindAllStringSubmatch(text, maxQuoted) {
		if quoted := m[1] + m[2]; strings.Contains(quoted, " ") {
			all = append(all, strings.ReplaceAll(quoted, `\"`, `"`))
		}
	}
	return all
}

const maxQuoted = 20

var (
	lead     = lazyregexp.New(`^\s*(?:[-*+>$#]\s+|run:\s*|RUN\s+|//\s*)*`)
	inQuotes = lazyregexp.New(`"((?:[^"\\]|\\.)*)"|'([^']*)'`)
)

// graveStems has the first four letters of each word for grave harm, or the whole word if it is shorter. nod
// judges only texts with such a word.
var graveStems = sync.OnceValue(func() map[string]bool {
	stems := map[string]bool{}
	for _, word := range strings.Fields("rm rmdir unlink shred srm trash dd mkfs wipefs fdisk parted find xargs git gh glab curl wget http scp sftp rsync ssh mosh telnet ftp nc ncat socat openssl mail mutt sendmail rclone " +
		"sudo doas su runuser pkexec chmod chown setfacl docker podman nerdctl kubectl oc helm terraform tofu pulumi ansible aws gsutil gcloud az heroku fly flyctl eb railway firebase doctl vercel netlify wrangler psql mysql redis mongo sqlite3 " +
		"npm pnpm yarn cargo twine gem crontab systemctl launchctl sysctl at batch visudo usermod useradd passwd defaults shutdown reboot halt poweroff env printenv security op pass vault gpg nod eval sh bash zsh alias " +
		"drop delete truncate update wipe empty flush grant rmtree remove rimraf force publish release deploy migrate roll production base64 exec spawn subprocess system child fs fileutils gnupg netrc kube shadow etc dev id_rsa id_ed25519 python node") {
		stems[word[:min(len(word), 4)]] = true
	}
	return stems
})

// graveWord returns the offset of the first word in a text that begins like one of graveStems, or -1. Most
// lines have no such word, so graveWord keeps long texts from being judged in full.
func graveWord(text string) int {
	stems, from := graveStems(), 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && (text[i] == '_' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z' || text[i] >= '0' && text[i] <= '9') {
			continue
		}
		if i > from && stems[strings.ToLower(text[from:min(i, from+4)])] {
			return from
		}
		from = i + 1
	}
	return -1
}

// graveReasons are the beginnings of the reasons that count for a line of a file. Most lines of files are no
// commands, so other reasons would often be wrong.
var graveReasons = []string{
	"deletes ", "destroys ", "drops ", "discards ", "writes to a disk", "runs as root", "overwrites ", "publishes", "lets ", "opens ", "changes every row", "sends ", "uploads ", "runs code downloaded ", "copies ", "runs code that deletes", "replaces a program",
}

// vagueReasons say too little about a single line, unless the line also has a download or a URL.
var vagueReasons = []string{"runs a script", "runs code that the command holds", "runs its input as code", "runs code that it builds or decodes"}

// saysEnough reports whether a reason suffices for a person to look at its line first.
func saysEnough(reason, text string, kind TextKind) bool {
	switch {
	case strings.HasPrefix(reason, "may "):
		return false
	case slices.Contains(vagueReasons, reason):
		return downloads.MatchString(text)
	case reason == "shows secrets":
		return kind == CommandText && !strings.HasPrefix(strings.TrimSpace(text), "set ")
	case kind == CommandText, secretPath.MatchString(reason):
		return true
	}
	return slices.ContainsFunc(graveReasons, func(begin string) bool { return strings.HasPrefix(reason, begin) })
}

var (
	downloads  = lazyregexp.New(`\b(?:curl|wget|iwr)\b|https?://`)
	secretPath = lazyregexp.New(`^touches a secret or settings \(\S*(?:\.ssh|\.aws|\.env|\.gnupg|\.netrc|\.kube|shadow|id_rsa|id_ed25519)`)
)

const sendsData = "sends data"

// graveWords match acts that are grave in a text but not in the command table, each with its reason.
var graveWords = []struct {
	why  string
	expr lazyregexp.Regexp
}{
	{sendsData, lazyregexp.New(`\b(?:curl|wget)\b.*\s(?:-T|--upload-file|-F|--form|-d|--data(?:-\w+)?|--json|--post-(?:data|file)|--body-(?:data|file))(?:[\s=@]|$)`)},
	{"replaces a program", lazyregexp.New(`\balias\s+(?:sudo|su|doas|ssh|scp|git|gpg|curl|npm|pip|docker|kubectl)=`)},
}
