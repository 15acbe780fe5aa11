package schemas

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearestFindsWhatAMistypedWordMeans(t *testing.T) {
	known := []string{"telegram", "web", "allow", "permissions", "approvers"}
	for word, want := range map[string]string{
		"telegrm": "telegram", "telegarm": "telegram", "Permissions": "permissions", "permisions": "permissions",
		"alow": "allow", "wbe": "web", "slack": "", "x": "", "": "",
	} {
		assert.Equal(t, want, Nearest(word, known), word)
	}
}

func TestAMistypedSettingNamesTheRightOne(t *testing.T) {
	telegram := ChannelSettings{Name: "telegram", Schema: []byte(`{"type": "object"}`)}
	for text, want := range map[string]string{
		`{"permisions": {}}`:                                "permisions: is not known here; did you mean permissions?",
		`{"permissions": {"alow": []}}`:                     "permissions.alow: is not known here; did you mean allow?",
		`{"connectors": {"telegrm": {}}}`:                   "connectors.telegrm: is not known here; did you mean telegram?",
		`{"policies": [{"permissions": {"denny": ["x"]}}]}`: "policies[0].permissions.denny: is not known here; did you mean deny?",
		`{"entirely_else": 1}`:                              "entirely_else: is not known here; look for a typing mistake",
	} {
		_, err := DecodeSettings([]byte(text), telegram)
		assert.ErrorContains(t, err, want)
	}
	s, err := DecodeSettings([]byte(`{"$schema": "https://example.org/settings.schema.json", "permissions": {"allow": ["Read"]}}`), telegram)
	assert.NoError(t, err)
	assert.Equal(t, []string{"Read"}, s.Permissions.Allow)
}
