package schemas

import (
	"slices"
	"time"
)

// FreezeRequest freezes or thaws everything, one agent or one session. The subject says
// which of the two operations it is.
type FreezeRequest struct {
	Type      string `json:"type"`
	Agent     string `json:"agent,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Reason    string `json:"reason,omitempty"`
	From      From   `json:"from"` // an approver
	// CodeWord is needed for a thaw from the agents' machine if the settings name one.
	CodeWord string `json:"code_word,omitempty"`
}

// Freeze is a stop that is in force: requests under it are denied, whatever rules and
// grants say. It does not stop commands that already run.
type Freeze struct {
	Agent     string    `json:"agent,omitempty"`
	SessionID string    `json:"session_id,omitempty"` // both empty: everything
	Reason    string    `json:"reason,omitempty"`
	By        By        `json:"by"`
	At        time.Time `json:"at"`
}

// Covers reports whether the freeze includes a session of an agent.
func (f *Freeze) Covers(agent, session string) bool {
	return (f.Agent == "" || f.Agent == agent) && (f.SessionID == "" || f.SessionID == session)
}

// String is the text for agents and people: "frozen by Ann: too many deletions".
func (f *Freeze) String() string {
	if f.Reason == "" {
		return "frozen by " + f.By.Name
	}
	return "frozen by " + f.By.Name + ": " + f.Reason
}

// FreezeState lists the freezes in force. It is both the stored form and the reply to a
// FreezeRequest.
type FreezeState struct {
	Type    string   `json:"type"`
	Freezes []Freeze `json:"freezes"`
	// Denied counts the pending requests that a new freeze has ended.
	Denied int `json:"denied,omitempty"`
	// Unfinished: some pending requests are not denied yet, and the engine goes on.
	// Meanwhile none of them can be allowed, and a thaw waits for the last one.
	Unfinished bool `json:"unfinished,omitempty"`
	// Revision is that of the stored state, in a reply to a FreezeRequest.
	Revision uint64 `json:"revision,omitempty"`
	// Laggards are the engines that did not confirm in time that they obey.
	Laggards []string `json:"laggards,omitempty"`
}

// Of returns the freeze that covers a session of an agent, or nil.
func (f *FreezeState) Of(agent, session string) *Freeze {
	i := slices.IndexFunc(f.Freezes, func(z Freeze) bool { return z.Covers(agent, session) })
	if i < 0 {
		return nil
	}
	return &f.Freezes[i]
}
