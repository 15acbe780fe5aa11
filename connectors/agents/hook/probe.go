package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// probeTool is a tool that no host has. A call of it is refused by the hook itself,
// once nod has answered it: no rule and no person allows it.
const probeTool = "nod_probe"

// ProbeEnv is set for a hook that is only tried, so that it leaves no trace of having
// been run by its host.
const ProbeEnv = "NOD_HOOK_PROBE"

// probeWithin bounds a try: the hook looks for nod for at most connectWithin.
const probeWithin = connectWithin + passWithin + 5*time.Second

// Probe tries a hook as the host runs it, by the command that its settings hold,
// with a call that the hook refuses once nod has answered it. An error says what came
// instead of that refusal.
func (h Host) Probe(ctx context.Context, i Installed) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	nonce := agents.NewID()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", i.Command)
	cmd.Env = append(os.Environ(), ProbeEnv+"=1")
	cmd.Stdin = bytes.NewReader(h.probeInput(i.Event, nonce))
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ran := cmd.Run()
	want, exit := h.Dialect.Reply(Call{Event: i.Event}, deny(probed(nonce)))
	if strings.TrimSpace(out.String()) == string(want) && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exit {
		return nil
	}
	if said := oneLine(errs.String()); said != "" {
		return errors.New(said)
	}
	if ran != nil {
		return fmt.Errorf("it ended without an answer: %w", ran)
	}
	return fmt.Errorf("it answered %.100q", oneLine(out.String()))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// probed is what a hook says to a call that only tries it.
func probed(nonce string) string { return "nod answers: " + nonce }

// probeInput is a call of probeTool as the host would write it.
func (h Host) probeInput(event, nonce string) []byte {
	input := map[string]string{"nonce": nonce}
	call := map[string]any{"session_id": "nod-probe", "cwd": "/", "hook_event_name": event, "tool_name": probeTool, "tool_input": input}
	if h.Setup.Flat {
		call = map[string]any{"hookName": event, "sessionId": "nod-probe", "cwd": "/", "toolName": probeTool, "toolInput": input}
	}
	data, err := schemas.Encode(call)
	if err != nil {
		return nil // plain strings always encode
	}
	return data
}

// probe refuses a call that only tries the hook, and says what nod answered.
func (h *run) answerProbe(ctx context.Context, nod Nod) int {
	var input struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal(h.call.Input, &input); err != nil || !schemas.ValidID(input.Nonce) {
		return h.reply(deny("nod refused the call: " + probeTool + " is no tool"))
	}
	limited, cancel := context.WithTimeoutCause(ctx, passWithin, errLate)
	defer cancel()
	_, err := callUntil(limited, "trying nod", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, nod.HostResolved(ctx, schemas.HostResolved{SessionID: agents.ID(h.call.SessionID), PendingID: input.Nonce, Reason: "nod doctor tries the hook"})
	})
	if err != nil {
		h.log(err)
		return h.reply(deny("nod did not answer: " + err.Error()))
	}
	return h.reply(deny(probed(input.Nonce)))
}

// BlocksWhenGone reports whether an installed hook keeps a call from running if nod
// was killed or is gone. The hooks that earlier versions of nod wrote do not.
func (h Host) BlocksWhenGone(i Installed) bool {
	for _, event := range h.Setup.Blocks {
		if event == i.Event {
			return strings.HasSuffix(i.Command, orBlock)
		}
	}
	return true // its host asks its own user then
}
