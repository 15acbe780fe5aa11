package schemas

import (
	"slices"
	"strconv"
	"strings"
)

// Confirm is a rule for requests of the risk Risk or a higher one. It sets conditions that an allow
// needs in addition to an approver's answer. A denial needs no conditions.
type Confirm struct {
	Risk Risk `json:"risk"`
	// Rules limits the conditions to tool calls that one of these rules covers. An empty list sets no
	// limit.
	Rules []string `json:"rules,omitempty"`
	// Votes is the number of people who must allow the request; 0 means one.
	Votes int `json:"votes,omitempty"`
	// People lists the people and groups whose allows count. An empty list sets no limit.
	People []string `json:"people,omitempty"`
	// NotRequester means that the person whose agent asks cannot allow the request.
	NotRequester bool    `json:"not_requester,omitempty"`
	MinDisplay   Display `json:"min_channel,omitempty"`
	// Channels lists the connectors through which the request can be allowed. An empty list sets no
	// limit.
	Channels []string `json:"channels,omitempty"`
	// SecondDevice requires an answer from a device on which no agents run.
	SecondDevice bool `json:"second_device,omitempty"`
	// CodeWordEnv or CodeWordFile names the environment variable or the file, on the engine's machine,
	// with the code word that an answer must contain. While the engine cannot read the code word, no
	// request of this risk or above can be allowed.
	CodeWordEnv  string `json:"code_word_env,omitempty"`
	CodeWordFile string `json:"code_word_file,omitempty"`
}

// Display is a class of connectors by how much detail they can show.
type Display string

// The displays, from the least to the most detail.
const (
	DisplayVoice  Display = "voice"
	DisplayChat   Display = "chat"
	DisplayScreen Display = "screen"
)

// DisplayOf returns the display of a connector.
func DisplayOf(connector string) Display {
	switch {
	case IsViewer(connector):
		return DisplayScreen
	case connector == ClientVoice:
		return DisplayVoice
	}
	return DisplayChat
}

var (
	risks    = []Risk{RiskLow, RiskMedium, RiskHigh}
	displays = []Display{DisplayVoice, DisplayChat, DisplayScreen}
)

// ForTeams reports whether the rule has conditions about people: a number of votes, certain people, or
// another person than the requester. No standing answer allows a request under such a rule.
func (c *Confirm) ForTeams() bool { return c.Votes > 1 || len(c.People) > 0 || c.NotRequester }

// Newer reports whether the rule has a member that older engines, which do not know votes, do not
// know.
func (c *Confirm) Newer() bool { return c.ForTeams() || len(c.Rules)+len(c.Channels) > 0 }

// Wants reports whether the rule applies to a request of this risk. It does not look at the field
// Rules, which may still exclude the request. An unknown risk counts as the highest.
func (c *Confirm) Wants(risk Risk) bool {
	at := slices.Index(risks, risk)
	return at < 0 || at >= slices.Index(risks, c.Risk)
}

// CodeWord reports whether an allow must contain a code word.
func (c *Confirm) CodeWord() bool { return c.CodeWordEnv != "" || c.CodeWordFile != "" }

// Accepts reports whether the rule accepts an allow through this connector.
func (c *Confirm) Accepts(connector string) bool {
	if c.SecondDevice && !IsSecondDevice(connector) {
		return false
	}
	if len(c.Channels) > 0 && !slices.Contains(c.Channels, connector) {
		return false
	}
	return c.MinDisplay == "" || slices.Index(displays, DisplayOf(connector)) >= slices.Index(displays, c.MinDisplay)
}

// CodeWordFor returns the rule that demands a code word for an allow of this risk, or nil if there is
// none. If several rules demand one, it returns the rule for the highest risk.
func (s *Settings) CodeWordFor(risk Risk) (word *Confirm) {
	for _, c := range s.Confirms() {
		if c.CodeWord() && c.Wants(risk) && (word == nil || slices.Index(risks, c.Risk) > slices.Index(risks, word.Risk)) {
			word = &c
		}
	}
	return word
}

// These are the texts of Confirm.String for those conditions that some connectors or people can never
// meet.
const (
	ConditionSecondDevice = "a second device"
	ConditionCodeWord     = "the code word"
	ConditionNotRequester = "another person than the requester"
)

// HasCondition reports whether an allow of the prompt's request must meet this condition, such as
// ConditionCodeWord.
func (p *Prompt) HasCondition(condition string) bool {
	return slices.ContainsFunc(p.Conditions, func(takes string) bool { return slices.Contains(strings.Split(takes, ", "), condition) })
}

// String lists the rule's conditions, separated by commas, for example "a second device, the code word".
func (c *Confirm) String() string {
	var takes []string
	switch of := " of " + strings.Join(c.People, " or "); {
	case c.Votes > 1 && len(c.People) > 0:
		takes = append(takes, strconv.Itoa(c.Votes)+" people"+of)
	case c.Votes > 1:
		takes = append(takes, strconv.Itoa(c.Votes)+" people")
	case len(c.People) > 0:
		takes = append(takes, "an answer"+of)
	}
	if c.NotRequester {
		takes = append(takes, ConditionNotRequester)
	}
	if c.MinDisplay != "" && c.MinDisplay != DisplayVoice {
		takes = append(takes, "at least a "+string(c.MinDisplay))
	}
	if len(c.Channels) > 0 {
		takes = append(takes, "an answer through "+strings.Join(c.Channels, " or "))
	}
	if c.SecondDevice {
		takes = append(takes, ConditionSecondDevice)
	}
	if c.CodeWord() {
		takes = append(takes, ConditionCodeWord)
	}
	return strings.Join(takes, ", ")
}
