package schemas

import (
	"slices"
	"time"
)

// FreezeRequest freezes or thaws: everything, one agent or one session. Which of the two
// is told by the subject.
type FreezeRequest struct {
	Type      string `json:"type"`
	Agent     string `json:"agent,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Reason    string `json:"reason,omitempty"`
	From      From   `json:"from"` // an approver
	// CodeWord is what a thaw from the agents' machine takes where the settings
	// name one.
	CodeWord string `json:"code_word,omitempty"`
}

// Freeze is a brake that is on: what it covers is denied, whatever rules and
// grants say. It stops no command that runs already.
type Freeze struct {
	Agent     string    `json:"agent,omitempty"`
	SessionID string    `json:"session_id,omitempty"` // neither: everything
	Reason    string    `json:"reason,omitempty"`
	By        By        `json:"by"`
	At        time.Time `json:"at"`
}

// Covers reports whether the freeze is about a session of an agent.
func (f *Freeze) Covers(agent, session string) bool {
	return (f.Agent == "" || f.Agent == agent) && (f.SessionID == "" || f.SessionID == session)
}

// String is what agents and people are told: "frozen by Ann: too many deletions".
func (f *Freeze) String() string {
	if f.Reason == "" {
		return "frozen by " + f.By.Name
	}
	return "frozen by " + f.By.Name + ": " + f.Reason
}

// FreezeState are the freezes in force, as they are stored and as a Brake is answered.
type FreezeState struct {
	Type    string   `json:"type"`
	Freezes []Freeze `json:"freezes"`
	// Denied are how many open requests a new freeze has ended.
	Denied int `json:"denied,omitempty"`
	// Unfinished: not all of them are denied yet; the engine goes on. None can be
	// allowed meanwhile, and a thaw comes after the last.
	Unfinished bool `json:"unfinished,omitempty"`
	// Revision is the stored one's, where this answers a Brake.
	Revision uint64 `json:"revision,omitempty"`
	// Laggards are the engines that did not say in time that they obey.
	Laggards []string `json:"laggards,omitempty"`
}

// Of is the freeze that covers a session of an agent, or nil.
func (f *FreezeState) Of(agent, session string) *Freeze {
	i := slices.IndexFunc(f.Freezes, func(z Freeze) bool { return z.Covers(agent, session) })
	if i < 0 {
		return nil
	}
	return &f.Freezes[i]
}
