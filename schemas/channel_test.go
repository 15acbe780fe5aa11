package schemas

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The golden files have settings of a channel. Its package cannot be imported here, but
// its schema can be read.
func init() {
	schema, err := os.ReadFile("../connectors/people/telegram/settings.schema.json")
	if err != nil {
		panic(err)
	}
	RegisterChannel(ChannelSettings{Name: "telegram", Schema: schema})
	RegisterChannel(ChannelSettings{
		Name:   "pager",
		Schema: []byte(`{"type": "object", "additionalProperties": false, "properties": {"number": {"type": "integer"}}}`),
		Check: func(settings json.RawMessage) error {
			var s struct{ Number int }
			if err := json.Unmarshal(settings, &s); err != nil || s.Number == 0 {
				return Errorf(CodeValidation, "connectors.pager.number: must not be 0")
			}
			return nil
		},
	})
}

func TestTheSettingsOfAChannel(t *testing.T) {
	for settings, want := range map[string]string{
		`{"connectors": {"pager": {"number": 7}, "web": {"public_url": "https://x.example"}}}`: "",
		`{"connectors": {"pager": {"number": 0}}}`:                                             "connectors.pager.number: must not be 0",
		`{"connectors": {"pager": {"number": "7"}}}`:                                           "connectors.pager.number: ",
		`{"connectors": {"pager": {"numbers": 7}}}`:                                            "connectors.pager.numbers: ",
		`{"connectors": {"pagers": {}}}`:                                                       "connectors.pagers: ",
	} {
		s, err := DecodeSettings([]byte(settings))
		if want != "" {
			assert.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		assert.JSONEq(t, `{"number": 7}`, string(s.Connectors.Channels["pager"]))
		assert.Len(t, s.Connectors.Channels, 1)
		again, err := json.Marshal(s)
		require.NoError(t, err)
		var a, b map[string]any
		require.NoError(t, json.Unmarshal([]byte(settings), &a))
		require.NoError(t, json.Unmarshal(again, &b))
		assert.Equal(t, a["connectors"], b["connectors"])
	}
	assert.Panics(t, func() { RegisterChannel(ChannelSettings{Name: "pager"}) })
}
