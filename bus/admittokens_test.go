package bus_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/tokens"
	"github.com/nodbus/nod/connectors/agents/tokens/tokenstest"
)

// A NATS server refuses the bearer of an invalid token, with plain keys and in operator mode.
func TestServersRefuseInvalidTokens(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		i, other := tokenstest.New(t), tokenstest.New(t)
		settings, err := tokens.Parse([]byte(`{"jobs": [{"issuer": "` + i.URL + `", "audience": "nod", "match": {"repository": "acme/*"}, "agent": "ada"}]}`))
		require.NoError(t, err)
		service, err := tokens.New(settings, quiet())
		require.NoError(t, err)
		a := startAdmitting(t, m)
		a.serve(service.Check)
		_, err = a.join("ada", i.Token(nil))
		require.NoError(t, err)
		for name, token := range i.Invalid(other) {
			_, err := a.join("ada", token)
			require.ErrorIs(t, err, nats.ErrAuthorization, name)
		}
		_, err = a.join("ada", i.Token(nil))
		require.NoError(t, err)
	})
}
