package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// A change of settings.json adds its members and keeps everything else in its order.
func TestAChangedSettingsFileKeepsTheRest(t *testing.T) {
	before := []byte(`{
	"permissions": {
		"connected_timeout_seconds": 90,
		"allow": [
			"Bash(make)"
		]
	},
	"log": {"payloads": true}
}
`)
	s, err := embed.DecodeSettings(before)
	require.NoError(t, err)
	more := schemas.Settings{Permissions: schemas.Permissions{Allow: []string{"Bash(make)", "Bash(go test:*) in /app"}, Deny: []string{"Bash(rm:*)"}}}
	after, err := withMembers(before, append(additions(&s, more), member{"/permissions/preset", "project"}))
	require.NoError(t, err)
	assert.Equal(t, `{
	"permissions": {
		"connected_timeout_seconds": 90,
		"allow": [
			"Bash(make)",
			"Bash(go test:*) in /app"
		],
		"deny":   ["Bash(rm:*)"],
		"preset": "project"
	},
	"log": {"payloads": true}
}
`, string(after))
	s, err = embed.DecodeSettings(after)
	require.NoError(t, err)
	assert.Empty(t, additions(&s, more), "a second time there is nothing to add")

	after, err = withMembers([]byte("{}"), additions(&schemas.Settings{}, more))
	require.NoError(t, err)
	s, err = embed.DecodeSettings(after)
	require.NoError(t, err)
	assert.Equal(t, more.Permissions, s.Permissions)
}
