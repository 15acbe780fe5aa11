package shell

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// sentSecrets are the secrets that a line sends to another machine.
type sentSecrets struct {
	reasons []string
	by      map[int]bool // the commands that send, by index in Commands
	words   []string     // the words of the line that name the secrets
}

// plainPlace matches the name of a place that cannot be mistaken for a text of nod.
var plainPlace = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,59}$`)

// sentSecrets finds the commands that send a secret. Such a command names the secret, or gets it from another
// command. A secret that the line only reads does not count.
func (f *Facts) sentSecrets() (sent sentSecrets) {
	sent.by = map[int]bool{}
	for i, argv := range f.Commands {
		if isOperandDot(argv) || !commands.Reaches(f.harmsOf(i)) {
			continue
		}
		verb, name := "sends", ""
		what := commands.SentWords(argv)
		for _, other := range f.alike[i] {
			what = append(what[:len(what):len(what)], commands.SentWords(other)...)
		}
		what = append(what[:len(what):len(what)], f.fed[i]...)
		for _, w := range what {
			file := commands.FileIn(w)
			certain, maybe := f.isSecret(file)
			if !certain && !maybe && !f.printsSecrets(file) {
				continue
			}
			if name == "" || verb == "may send" && certain {
				if verb, name = "sends", file; maybe {
					verb = "may send"
				}
			}
			sent.words = append(sent.words, w, file)
			sent.by[i] = true
		}
		if !sent.by[i] {
			continue
		}
		to := f.destination(i)
		if to == commands.Unknown && f.isPartOfSender(i, sent.by) {
			continue
		}
		reason := verb + " secrets"
		if plainWord.MatchString(name) {
			reason += " (" + name + ")"
		}
		if reason += " to " + to; !slices.Contains(sent.reasons, reason) {
			sent.reasons = append(sent.reasons, reason)
		}
	}
	return sent
}

// printsSecrets reports whether a word is a command of the line that prints secrets. env prints them only if
// its words name no command to run.
func (f *Facts) printsSecrets(w string) bool {
	return commands.PrintsSecrets(w) && slices.ContainsFunc(f.Commands, func(argv []string) bool {
		return argv[0] == w && (commands.ProgramName(w) != "env" || !slices.ContainsFunc(argv[1:], func(a string) bool { return !strings.HasPrefix(a, "-") && !strings.Contains(a, "=") }))
	})
}

// isPartOfSender reports whether the words of a command are the last words of an earlier command that sends.
// For example, Facts has not only the command "sudo nc host 1", but also the possible command "host 1".
func (f *Facts) isPartOfSender(i int, senders map[int]bool) bool {
	argv := f.Commands[i]
	for k := range i {
		if whole := f.Commands[k]; senders[k] && len(whole) > len(argv) && slices.Equal(whole[len(whole)-len(argv):], argv) {
			return true
		}
	}
	return false
}

// isSecret reports whether a word certainly means a secret, or may mean one. A text such as a filter of jq
// does not name a file.
func (f *Facts) isSecret(w string) (certain, maybe bool) {
	if _, _, socket := socketOf(w); socket || w == "" || strings.ContainsAny(w, " \n") {
		return false, false
	}
	if slices.ContainsFunc(f.Location.Resolve(w), f.secrets.Listed) {
		return true, false
	}
	return false, plainWord.MatchString(w) && f.secrets.MayBe(w, f.Location, false)
}

// hides reports whether the shell knows more of the name of a place than nod does.
func (f *Facts) hides(name string) bool {
	if name == "" {
		return true
	}
	_, value, _ := strings.Cut(name, " ") // in "context prod", prod
	for w := range f.partial {
		if w != "" && name != commands.Unknown && !commands.InUse(name) && (strings.HasSuffix(name, w) || strings.Contains(w, name) || value != "" && strings.Contains(w, value)) {
			return true
		}
	}
	return strings.HasSuffix(name, " ")
}

// destination returns the places to which a command sends, as one text for people. A place that nod cannot
// tell is commands.Unknown.
func (f *Facts) destination(i int) string {
	places := commands.Destinations(f.Commands[i])
	for k, place := range places {
		if f.hides(place) || !plainPlace.MatchString(place) && place != commands.Unknown && !commands.InUse(place) {
			places[k] = commands.Unknown
		}
	}
	if len(places) == 0 || f.mayGoElsewhere(i) {
		places = append(places, commands.Unknown)
	}
	slices.Sort(places)
	return strings.Join(slices.Compact(places), " and ")
}

// renamers are the commands after which a name may mean another program.
var renamers = []string{"alias", "hash", "enable", "source", ".", "trap", "read"}

// mayGoElsewhere reports whether a command may act on another place than its words seem to name.
func (f *Facts) mayGoElsewhere(i int) bool {
	argv := f.Commands[i]
	if _, _, ok := commands.Remote(argv); ok {
		return f.renames() || commands.IsElsewhere(argv[0])
	}
	return f.moved || f.renames() || f.loose[i] || commands.MayGoElsewhere(argv)
}

// renames reports whether a name in the line may mean another program than usual.
func (f *Facts) renames() bool {
	for ; f.searched < len(f.Commands) && !f.renamed; f.searched++ {
		argv := f.Commands[f.searched]
		f.renamed = slices.Contains(renamers, argv[0]) && !isOperandDot(argv)
	}
	return f.renamed
}
