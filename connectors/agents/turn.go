package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/schemas"
)

// reply is the id of an option. A person who chooses it writes the agent's next prompt.
const reply = "reply"

// maxLast is the largest length, in bytes, of each text in a TurnRequest. A longer question would not
// fit into one message of a chat, and chats offer a reply only to a single message.
const maxLast = 1500

// turnTool is the ToolName of each TurnRequest. People see it.
const turnTool = "turn"

// Turn is the end of an agent's turn. If a text has more than 1,500 bytes, people see only its end, with
// a mark.
type Turn struct {
	Message string // the agent's last message; may be empty
	Failure string // why the turn failed; empty if the agent has finished
	NoReply bool   // the host takes no prompt in reply, so that people only read that the turn is over
}

// TurnRequest returns a request that tells people that the turn of an agent is over. A person's reply
// becomes the agent's next prompt; see Reply. If t.NoReply is true, people can only say that they have
// seen the request. The session, the agent and the host are those of r. The host's own user may write
// the next prompt before a person replies. The error means that t cannot be encoded as JSON.
func TurnRequest(r schemas.Request, t Turn) (schemas.Request, error) {
	details := map[string]string{}
	for name, text := range map[string]string{"message": t.Message, "failure": t.Failure} {
		if text = strings.TrimSpace(strings.ToValidUTF8(text, "�")); text != "" {
			details[name] = cutBytes(text, maxLast)
		}
	}
	var err error
	if r.ActionDetails, err = schemas.Encode(details); err != nil {
		return r, err
	}
	r.Kind, r.ActionType, r.Title = schemas.KindQuestion, schemas.ActionOther, "Your turn: the agent has finished"
	switch {
	case t.Failure != "" && t.NoReply:
		r.Title = "The agent has failed, and waits in its terminal"
	case t.Failure != "":
		r.Title = "Your turn: the agent has failed"
	}
	r.PendingID, r.ToolCallID, r.ToolName, r.Rejoin, r.HostAsks = NewID(), "", turnTool, false, true
	r.Options = []schemas.Option{
		{OptionID: reply, Name: "Reply: the agent's next prompt", Kind: schemas.AllowOnce, Text: true},
		{OptionID: noAnswer, Name: "Leave it", Kind: schemas.RejectOnce},
	}
	if t.NoReply {
		r.Options = []schemas.Option{{OptionID: noAnswer, Name: "Seen: go on in its terminal", Kind: schemas.RejectOnce}}
	}
	return r, nil
}

// TurnID returns the id of the question about the end of a turn. All processes that follow a session
// use this id, so that they share one question. The parameter turn identifies the turn in its session,
// and round is the number of earlier questions about it that were withdrawn.
func TurnID(session, turn string, round int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", session, turn, round))
	return "turn_" + hex.EncodeToString(sum[:12])
}

// Reply returns the next prompt that a person wrote for the agent. d is the decision about r, which
// must be a TurnRequest. ok is false if no person replied.
func Reply(r schemas.Request, d schemas.Decision) (prompt string, ok bool) {
	if d.OptionID != reply || d.By.Kind != schemas.ByHuman || !Allows(r, d) {
		return "", false
	}
	prompt = strings.TrimSpace(d.Message)
	return prompt, prompt != ""
}

// cutBytes returns s if it has at most n bytes. Otherwise it returns the end of s, after a line that
// says that the beginning is missing.
func cutBytes(s string, n int) string {
	const mark = "(cut by nod: the agent has the beginning)\n… "
	if len(s) <= n {
		return s
	}
	for n -= len(mark); n > 0 && !utf8.RuneStart(s[len(s)-n]); {
		n--
	}
	return mark + s[len(s)-n:]
}
