package embed_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/embed"
)

func TestChannelsAreDocumented(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.NotEmpty(t, embed.Channels())
	schema, err := embed.SettingsSchema()
	require.NoError(t, err)
	for _, c := range embed.Channels() {
		require.FileExists(t, filepath.Join("..", c.Guide))
		starts := "`nod pair " + c.Name() + "`"
		if c.Settings.Outgoing {
			starts = "`connectors." + c.Name() + "`"
		}
		require.Contains(t, string(readme), starts+" (["+c.Guide+"]("+c.Guide+"))")
		require.NotEmpty(t, c.Account)
		require.Contains(t, string(schema), `"`+c.Name()+`": {`)
	}
}
