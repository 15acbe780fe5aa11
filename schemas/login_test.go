package schemas

import (
	"strings"
	"testing"
)

func TestTheNameOfALoginControlsNoTerminal(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Ann":                         "Ann (s)",
		"Ann\u009b2J\x7f\u202e\u200b": "Ann2J (s)",
		"Bob (s-bob)@web":             "Bob s-bobweb (s)",
		"\n\t":                        "(s)",
		strings.Repeat("ä", 60):       strings.Repeat("ä", 48) + " (s)",
	} {
		if got := (&Login{Name: name, Subject: "s"}).approverName(); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
