package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/embed"
)

func TestChoosingAPresetKeepsTheRules(t *testing.T) {
	before := []byte(`{"permissions": {"allow": ["Bash(make)"], "connected_timeout_seconds": 90}}`)
	s, err := embed.DecodeSettings(before)
	require.NoError(t, err)
	members, err := choosePreset(policy.PresetContained)(&s)
	require.NoError(t, err)
	after, err := withMembers(before, members)
	require.NoError(t, err)
	s, err = embed.DecodeSettings(after)
	require.NoError(t, err)
	assert.Equal(t, policy.PresetContained, s.Permissions.Preset)
	assert.Equal(t, []string{"Bash(make)"}, s.Permissions.Allow)
	assert.Equal(t, 90, s.Permissions.ConnectedTimeoutSeconds)
}
