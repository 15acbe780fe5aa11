package shell

import (
	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/weburl"
)

// urlFaults returns the faults of the URLs to which a command may connect, also of those in variables.
func (f *Facts) urlFaults(i int) []weburl.Fault {
	if f.faults == nil {
		f.faults = make([][]weburl.Fault, len(f.Commands))
		for k := range f.Commands {
			f.faults[k] = f.findURLFaults(k)
		}
	}
	return f.faults[i]
}

func (f *Facts) findURLFaults(i int) []weburl.Fault {
	partial := func(w string) bool { return len(f.partial[w]) > 0 }
	all := commands.URLFaults(f.Commands[i], partial)
	for _, other := range f.alike[i] {
		all = append(all, commands.URLFaults(other, partial)...)
	}
	return all
}

// SecretURL returns the reason if the line sends a secret in a URL, or "".
func (f *Facts) SecretURL() string {
	for i := range f.Commands {
		for _, fault := range f.urlFaults(i) {
			if fault.Needs == weburl.WholeCall {
				return fault.Why
			}
		}
	}
	return ""
}
