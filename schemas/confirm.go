package schemas

import (
	"slices"
	"strings"
)

// Confirm says what it takes, besides an approver's word, to allow a request of
// some risk or above. Denying takes nothing.
type Confirm struct {
	Risk       Risk    `json:"risk"`
	MinChannel Channel `json:"min_channel,omitempty"`
	// SecondDevice: allowed from another device than those where agents run.
	SecondDevice bool `json:"second_device,omitempty"`
	// CodeWordEnv or CodeWordFile name where the engine finds the word that must
	// be said. Where it cannot be read, nothing of this risk is allowed.
	CodeWordEnv  string `json:"code_word_env,omitempty"`
	CodeWordFile string `json:"code_word_file,omitempty"`
}

// Channel is how much of a request a connector can show.
type Channel string

// The channels, the poorest first.
const (
	ChannelVoice  Channel = "voice"
	ChannelChat   Channel = "chat"
	ChannelScreen Channel = "screen"
)

// ChannelOf is what a connector is.
func ChannelOf(connector string) Channel {
	switch {
	case Inbox(connector):
		return ChannelScreen
	case connector == ClientVoice:
		return ChannelVoice
	}
	return ChannelChat
}

// ordered are the risks and the channels, the lowest first.
var (
	risks    = []Risk{RiskLow, RiskMedium, RiskHigh}
	channels = []Channel{ChannelVoice, ChannelChat, ChannelScreen}
)

// Wants reports whether the rule is about requests of this risk; one that is not
// known is taken for the highest.
func (c *Confirm) Wants(risk Risk) bool {
	at := slices.Index(risks, risk)
	return at < 0 || at >= slices.Index(risks, c.Risk)
}

// CodeWord reports whether a word must be said.
func (c *Confirm) CodeWord() bool { return c.CodeWordEnv != "" || c.CodeWordFile != "" }

// Takes reports whether an answer may come through this connector.
func (c *Confirm) Takes(connector string) bool {
	if c.SecondDevice && Inbox(connector) {
		return false
	}
	return c.MinChannel == "" || slices.Index(channels, ChannelOf(connector)) >= slices.Index(channels, c.MinChannel)
}

// String says what it takes, after "to allow this takes".
func (c *Confirm) String() string {
	var takes []string
	if c.MinChannel != "" && c.MinChannel != ChannelVoice {
		takes = append(takes, "at least a "+string(c.MinChannel))
	}
	if c.SecondDevice {
		takes = append(takes, "a second device")
	}
	if c.CodeWord() {
		takes = append(takes, theCodeWord)
	}
	return strings.Join(takes, ", ")
}

// theCodeWord is the last of what String names.
const theCodeWord = "the code word"

// TakesCodeWord reports whether an answer that allows this must bring the code
// word.
func (p *Prompt) TakesCodeWord() bool {
	return slices.ContainsFunc(p.Takes, func(t string) bool { return strings.HasSuffix(t, theCodeWord) })
}
