package schemas

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pager is a channel. Its settings have a rule that its schema cannot express.
var pager = ChannelSettings{
	Name:   "pager",
	Schema: []byte(`{"type": "object", "additionalProperties": false, "properties": {"number": {"type": "integer"}, "at": {"type": "string", "pattern": "^<.*>$"}}}`),
	Check: func(settings json.RawMessage) error {
		var s struct{ Number int }
		if err := json.Unmarshal(settings, &s); err != nil || s.Number == 0 {
			return Errorf(CodeValidation, "connectors.pager.number: must not be 0")
		}
		return nil
	},
}

func TestTheSettingsOfAChannel(t *testing.T) {
	for settings, want := range map[string]string{
		`{"connectors": {"pager": {"number": 7}, "web": {"public_url": "https://x.example"}}}`: "",
		`{"connectors": {"pager": {"number": 0}}}`:                                             "connectors.pager.number: must not be 0",
		`{"connectors": {"pager": {"number": "7"}}}`:                                           "connectors.pager.number: must be of type integer, not string",
		`{"connectors": {"pager": {"number": 7, "at": "here"}}}`:                               "connectors.pager.at: must be like ^<.*>$",
		`{"connectors": {"pager": {"numbers": 7}}}`:                                            "connectors.pager.numbers: is not known here",
		`{"connectors": {"pager": {"Number": 7}}}`:                                             "connectors.pager.Number: is not a field; write number",
		`{"connectors": {"pager": 7}}`:                                                         "connectors.pager: must be of type object, not number",
		`{"connectors": {"pager": null}}`:                                                      "connectors.pager: must be of type object, not null",
		`{"connectors": {"pager": {"number": 7}, "pager": {}}}`:                                "connectors.pager: is given twice",
		`{"connectors": {"Pager": {"number": 7}}}`:                                             "connectors.Pager: is not a field; write pager",
		`{"connectors": {"pagers": {}}}`:                                                       "connectors.pagers: is not known here",
	} {
		s, err := DecodeSettings([]byte(settings), pager)
		if want != "" {
			assert.ErrorIs(t, err, &Error{Code: CodeValidation})
			assert.ErrorContains(t, err, want)
			assert.Zero(t, s)
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

		_, err = DecodeSettings([]byte(settings))
		assert.EqualError(t, err, "connectors.pager: is not known here; look for a typing mistake")
		require.NoError(t, Decode([]byte(settings), &s), "Decode knows no channels, and keeps their settings")
		assert.JSONEq(t, `{"number": 7}`, string(s.Connectors.Channels["pager"]))
	}
}

func TestTheSchemaWithAChannel(t *testing.T) {
	data, err := SettingsSchema(pager)
	require.NoError(t, err)
	var schema struct {
		Defs struct {
			Connectors struct{ Properties map[string]json.RawMessage }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(data, &schema))
	assert.JSONEq(t, string(pager.Schema), string(schema.Defs.Connectors.Properties["pager"]))
	assert.Contains(t, string(data), "^<.*>$")

	for fault, channels := range map[string][]ChannelSettings{
		"two connectors pager":           {pager, pager},
		"two connectors web":             {{Name: "web", Schema: []byte("{}")}},
		"the schema of connectors.pager": {{Name: "pager", Schema: []byte("{")}},
	} {
		_, err := SettingsSchema(channels...)
		assert.ErrorContains(t, err, fault)
		_, err = DecodeSettings([]byte(`{"connectors": {"pager": {"number": 7}}}`), channels...)
		assert.ErrorIs(t, err, &Error{Code: CodeInternal}, fault)
	}
}

// An outgoing channel meets no condition for an allow, because it takes no answers.
func TestConditionsThatOnlyAnOutgoingChannelMeetsAreRefused(t *testing.T) {
	bell := ChannelSettings{Name: "bell", Schema: []byte(`{"type": "object"}`), Outgoing: true}
	const ann = `"people": [{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "bell", "user_id": "ann"}]}]`
	for settings, want := range map[string]string{
		`{"approvers": {"require": "second_device", ` + ann + `}}`:                                                       "approvers.require: no approver has an identity that could allow: it takes a second device",
		`{"permissions": {"confirm": [{"risk": "high", "channels": ["bell"]}]}, "approvers": {` + ann + `}}`:             "permissions.confirm[0]: no approver has an identity that could allow: it takes an answer through bell",
		`{"permissions": {"confirm": [{"risk": "high", "channels": ["bell", "terminal"]}]}, "approvers": {` + ann + `}}`: "",
		`{"permissions": {"confirm": [{"risk": "high", "votes": 2, "channels": ["bell"]}]}, "approvers": {` + ann + `}}`: "permissions.confirm[0]: takes the votes of 2 people, and only 1 could allow",
	} {
		_, err := DecodeSettings([]byte(settings), bell)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
}
