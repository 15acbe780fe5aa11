package embed_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/embed"
)

func TestTheGoldenSettingsAreValidForAllChannels(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"settings.json", "settings_change.json", "settings_state.json"} {
		data, err := os.ReadFile("../schemas/v1/golden/" + file)
		require.NoError(t, err)
		var message struct{ Settings json.RawMessage }
		require.NoError(t, json.Unmarshal(data, &message))
		if message.Settings != nil {
			data = message.Settings
		}
		_, err = embed.DecodeSettings(data)
		require.NoError(t, err, file)
	}
}
