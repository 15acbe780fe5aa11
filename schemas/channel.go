package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// ChannelSettings describes the settings of a people connector: connectors.NAME in
// settings.json. The connector owns their struct and their schema; this package holds
// them to that schema without knowing it.
type ChannelSettings struct {
	Name string // the key under connectors
	// Schema is the JSON Schema of the settings. It refers to no other file.
	Schema []byte
	// Check enforces rules that a JSON Schema cannot express, on settings that match
	// Schema. Its errors are those of Decode, with the path from the top of
	// settings.json; see Errorf.
	Check func(settings json.RawMessage) error
}

var channelSettings struct {
	mu  sync.Mutex
	all map[string]ChannelSettings
}

// RegisterChannel adds the settings of a people connector to settings.json. Settings of
// a connector that is not registered are refused. Call it from an init function: the
// first Decode fixes the schema. It panics if the name is taken.
func RegisterChannel(c ChannelSettings) {
	channelSettings.mu.Lock()
	defer channelSettings.mu.Unlock()
	if _, taken := channelSettings.all[c.Name]; taken {
		panic("schemas: the channel " + c.Name + " is registered twice")
	}
	if channelSettings.all == nil {
		channelSettings.all = map[string]ChannelSettings{}
	}
	channelSettings.all[c.Name] = c
}

// registeredChannels are the registered channels in the order of their names.
func registeredChannels() []ChannelSettings {
	channelSettings.mu.Lock()
	defer channelSettings.mu.Unlock()
	var all []ChannelSettings
	for _, name := range slices.Sorted(maps.Keys(channelSettings.all)) {
		all = append(all, channelSettings.all[name])
	}
	return all
}

// lastOwnConnector is the line of settings.schema.json behind which the schemas of
// channels are inserted.
const lastOwnConnector = "\n        \"web\": { \"$ref\": \"#/$defs/web\" }"

// withChannels inserts the schemas of the registered channels into the schema of
// settings.json.
func withChannels(schema []byte) ([]byte, error) {
	parts := []byte(lastOwnConnector)
	for _, c := range registeredChannels() {
		parts = fmt.Appendf(parts, ",\n        %q: ", c.Name)
		parts = append(parts, bytes.ReplaceAll(bytes.TrimSpace(c.Schema), []byte("\n"), []byte("\n        "))...)
	}
	whole := bytes.Replace(schema, []byte(lastOwnConnector), parts, 1)
	if !json.Valid(whole) || !bytes.Contains(whole, parts) {
		return nil, fmt.Errorf("a channel's schema does not fit into settings%s", schemaSuffix)
	}
	return whole, nil
}

// ownConnectors are the fields of Connectors that this package knows.
var ownConnectors = []string{"voice", "web"}

// MarshalJSON writes the settings of channels beside those of the other connectors.
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

// UnmarshalJSON keeps the settings of channels as they are written.
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

// check applies the rules of the registered channels to their settings.
func (c *Connectors) check() error {
	for _, channel := range registeredChannels() {
		if settings, there := c.Channels[channel.Name]; there && channel.Check != nil {
			if err := channel.Check(settings); err != nil {
				return err
			}
		}
	}
	return nil
}
