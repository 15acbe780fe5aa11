package schemas

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// An empty list of scopes means that only openid is requested. A missing list means DefaultScopes.
func TestAnEmptyListOfScopesStays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{`{"scopes":[]}`: {}, `{}`: nil, `{"scopes":["a"]}`: {"a"}} {
		var o, again OIDC
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		data, err := Encode(&o)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &again))
		require.Equal(t, want, again.Scopes, text)
	}
}
