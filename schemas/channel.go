package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// ChannelSettings describes the settings of a channel, which are the member connectors.NAME of
// settings.json. The channel's package defines the struct and the schema of these settings. Callers
// pass both to DecodeSettings and SettingsSchema.
type ChannelSettings struct {
	Name string // the connector's name, which is also the settings' name under connectors
	// Schema is the JSON Schema of the channel's settings, without a $ref. It may use only those keywords
	// that the schema of settings.json uses.
	Schema []byte
	// Check gets settings that match Schema, and enforces those rules that a JSON Schema cannot express.
	// It may be nil. An error of Check is a VALIDATION_ERROR of one line, which begins with the field's
	// path in settings.json.
	Check func(settings json.RawMessage) error
	// Outgoing means that the channel only tells people about requests. Answers, freezes and thaws
	// through it are refused. It counts neither as a way to ask a person nor as a second device.
	Outgoing bool
}

// DecodeSettings decodes and checks a settings.json. It accepts settings of nod's own connectors and
// of the given channels. An unknown property or connector is an error, so that a typing error, for
// example in the name of a list of rules, is noticed. Errors are *Error, as in Decode.
func DecodeSettings(data []byte, channels ...ChannelSettings) (Settings, error) {
	var s Settings
	err := Decode(data, &s)
	if err == nil {
		err = checkChannels(data, s.Connectors.Channels, channels)
	}
	if err == nil {
		err = s.reachable(func(connector string) bool {
			return slices.ContainsFunc(channels, func(c ChannelSettings) bool { return c.Name == connector && c.Outgoing })
		})
	}
	if err != nil {
		return Settings{}, err
	}
	return s, nil
}

// checkChannels checks the settings of channels in data, which is a settings.json that Decode accepts.
// The map sections has these settings by connector name.
func checkChannels(data []byte, sections map[string]json.RawMessage, channels []ChannelSettings) error {
	if len(sections) == 0 {
		return nil // there is nothing to check, and compiling the schema would take milliseconds
	}
	schema, err := compileSettings(channels)
	if err != nil {
		return Errorf(CodeInternal, "%v", err)
	}
	tree, err := parse(data, schema, 0)
	if err != nil {
		return err
	}
	if err := schema.check(tree); err != nil {
		return err
	}
	for _, c := range channels {
		if settings, there := sections[c.Name]; there && c.Check != nil {
			if err := c.Check(settings); err != nil {
				return err
			}
		}
	}
	return nil
}

func compileSettings(channels []ChannelSettings) (*schema, error) {
	data, err := SettingsSchema(channels...)
	if err != nil {
		return nil, err
	}
	s, err := newCompiler().add("settings", data)
	if err != nil {
		return nil, fmt.Errorf("compile the schema of settings.json with its channels: %w", err)
	}
	return s, nil
}

// SettingsSchema returns the JSON Schema of settings.json, including the settings of the channels. The
// schema refers to no other file. An error means that two connectors have the same name, or that a
// channel's schema is not JSON.
func SettingsSchema(channels ...ChannelSettings) ([]byte, error) {
	doc, err := settingsDocument(channels)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("encode the schema of settings.json: %w", err)
	}
	return text.Bytes(), nil
}

// settingsDocument returns the decoded schema of settings.json. The schema allows settings only for nod's
// own connectors and the given channels.
func settingsDocument(channels []ChannelSettings) (any, error) {
	data, err := Schema("settings")
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read the schema of settings.json: %w", err)
	}
	definitions := doc["$defs"].(map[string]any)
	connectors := definitions["connectors"].(map[string]any)
	connectors["additionalProperties"] = false
	properties := connectors["properties"].(map[string]any)
	for _, c := range channels {
		if _, taken := properties[c.Name]; taken {
			return nil, fmt.Errorf("there are two connectors %s", c.Name)
		}
		var settings any
		if err := json.Unmarshal(c.Schema, &settings); err != nil {
			return nil, fmt.Errorf("read the schema of connectors.%s: %w", c.Name, err)
		}
		properties[c.Name] = settings
	}
	return doc, nil
}

// ownConnectors are the JSON names of the fields of Connectors, except for Channels.
var ownConnectors = []string{"web"}

// MarshalJSON writes the settings of channels beside the settings of nod's own connectors.
func (c Connectors) MarshalJSON() ([]byte, error) {
	type own Connectors
	data, err := json.Marshal(own(c))
	if err != nil || len(c.Channels) == 0 {
		return data, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, c.Channels)
	return json.Marshal(all)
}

// UnmarshalJSON decodes the settings of nod's own connectors, and keeps the settings of channels
// undecoded.
func (c *Connectors) UnmarshalJSON(data []byte) error {
	type own Connectors
	if err := json.Unmarshal(data, (*own)(c)); err != nil {
		return err
	}
	c.Channels = nil
	if err := json.Unmarshal(data, &c.Channels); err != nil {
		return err
	}
	for _, name := range ownConnectors {
		delete(c.Channels, name)
	}
	if len(c.Channels) == 0 {
		c.Channels = nil
	}
	return nil
}
