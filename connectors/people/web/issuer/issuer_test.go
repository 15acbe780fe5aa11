package issuer_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people/web/issuer"
	"github.com/nodbus/nod/schemas"
)

func TestADiscoveryDocumentOfAnotherIssuerIsNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": "https://login.example.com/\x1b[2J"})
	}))
	defer server.Close()
	client := issuer.New(schemas.OIDC{Issuer: server.URL, ClientID: "nod"}, "", "https://nod.example.com/callback")
	_, _, err := client.Begin(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"https://login.example.com/\x1b[2J"`) {
		t.Errorf("got %v", err)
	}
}
