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

// sentSecrets finds the commands that send a secret which they name, or which they get from another
// command. A secret that a line reads, and that no such command gets, is none of them.
func (f *Facts) sentSecrets() (sent sentSecrets) {
	sent.by = map[int]bool{}
	for i, argv := range f.Commands {
		if isOperandDot(argv) || !commands.Reaches(argv) {
			continue
		}
		verb, name := "sends", ""
		what := commands.SentWords(argv)
		what = append(what, f.fed[i]...)
		for _, w := range what {
			file := commands.FileIn(w)
			certain, maybe := f.isSecret(file)
			if !certain && !maybe && !commands.PrintsSecrets(file) {
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
		reason := verb + " secrets"
		if plainWord.MatchString(name) {
			reason += " (" + name + ")"
		}
		if reason += " to " + f.destination(i); !slices.Contains(sent.reasons, reason) {
			sent.reasons = append(sent.reasons, reason)
		}
	}
	return sent
}

// isSecret reports whether a word certainly means a secret, or may mean one. Texts such as a filter of
// jq are no files.
func (f *Facts) isSecret(w string) (certain, maybe bool) {
	if w == "" || strings.ContainsAny(w, " \n") {
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
	for w := range f.partial {
		if strings.HasSuffix(name, w) && w != "" || w != "" && name != commands.Unknown && strings.Contains(w, name) {
			return true
		}
	}
	return strings.HasSuffix(name, " ")
}

// destination returns the place to which a command sends, with commands.Unknown for one that nod cannot
// tell.
func (f *Facts) destination(i int) string {
	places := commands.Destinations(f.Commands[i])
	for k, place := range places {
		if f.hides(place) || !plainPlace.MatchString(place) && place != commands.Unknown && !commands.InUse(place) {
			places[k] = commands.Unknown
		}
	}
	if len(places) == 0 {
		places = append(places, commands.Unknown)
	}
	slices.Sort(places)
	return strings.Join(slices.Compact(places), " and ")
}
