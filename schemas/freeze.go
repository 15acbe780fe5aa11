package schemas

import (
	"slices"
	"time"
)

// FreezeRequest freezes or thaws all agents, one agent or one session. The message's subject says
// whether it freezes or thaws.
type FreezeRequest struct {
	Type      string `json:"type"`
	Agent     string `json:"agent,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Reason    string `json:"reason,omitempty"`
	From      From   `json:"from"` // the approver who freezes or thaws
	// CodeWord is the code word, if the settings demand one for a thaw from the agents' machine.
	CodeWord string `json:"code_word,omitempty"`
}

// Freeze is a freeze in force. The requests that it covers are denied, even if rules or grants would
// allow them. Commands that already run continue.
type Freeze struct {
	Agent     string    `json:"agent,omitempty"`
	SessionID string    `json:"session_id,omitempty"` // if both Session and Agent are empty, all agents are frozen
	Reason    string    `json:"reason,omitempty"`
	By        By        `json:"by"`
	At        time.Time `json:"at"`
	Later     Later     `json:"-"`
}

// Covers reports whether the freeze applies to a session of an agent.
func (f *Freeze) Covers(agent, session string) bool {
	return (f.Agent == "" || f.Agent == agent) && (f.SessionID == "" || f.SessionID == session)
}

// String describes the freeze for agents and people, for example "frozen by Ann: too many deletions".
func (f *Freeze) String() string {
	if f.Reason == "" {
		return "frozen by " + f.By.Name
	}
	return "frozen by " + f.By.Name + ": " + f.Reason
}

// FreezeState lists the freezes in force. It is stored, and is the reply to a FreezeRequest.
type FreezeState struct {
	Type    string   `json:"type"`
	Freezes []Freeze `json:"freezes"`
	// Denied is the number of pending requests that a new freeze has denied.
	Denied int `json:"denied,omitempty"`
	// Unfinished means that the engine is still denying pending requests of the freeze. None of these can
	// be allowed, and a thaw waits until all of them are denied.
	Unfinished bool `json:"unfinished,omitempty"`
	// Revision is the revision of the stored state. Only replies have it.
	Revision uint64 `json:"revision,omitempty"`
	// Laggards names the engines that did not confirm in time that they obey the new freeze.
	Laggards []string `json:"laggards,omitempty"`
	Later    Later    `json:"-"`
}

// Of returns the first freeze that covers this session of an agent, or nil if there is none.
func (f *FreezeState) Of(agent, session string) *Freeze {
	i := slices.IndexFunc(f.Freezes, func(z Freeze) bool { return z.Covers(agent, session) })
	if i < 0 {
		return nil
	}
	return &f.Freezes[i]
}
