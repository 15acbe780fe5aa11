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

// probeTool is the name of a tool that no host has. The hook itself refuses its calls as soon as nod
// has replied, so that neither a rule nor a person can allow them.
const probeTool = "nod_probe"

// ProbeEnv is an environment variable that Probe sets for the hook. With it, a run of the hook does not
// count as a run by the host.
const ProbeEnv = "NOD_HOOK_PROBE"

// probeWithin is the time limit of Probe: the time to connect to nod, the time for nod's reply, and 5 s
// to start the process.
const probeWithin = connectWithin + reportWithin + 5*time.Second

// Probe runs the command of the hook i as the host would, with a call of probeTool. It returns nil if
// the hook reached nod and refused the call. Otherwise the error says what happened.
func (h Host) Probe(ctx context.Context, i Installed) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	nonce := agents.NewID()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", i.Command)
	cmd.Env = append(os.Environ(), ProbeEnv+"=1")
	cmd.Stdin = bytes.NewReader(probeInput(i.Event, nonce))
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ran := cmd.Run()
	want, exit := h.Dialect.Reply(Call{Event: i.Event}, deny(probeReply(nonce)))
	if strings.TrimSpace(out.String()) == string(want) && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exit {
		return nil
	}
	if said := oneLine(errs.String()); said != "" {
		return errors.New(said)
	}
	if ran != nil {
		return fmt.Errorf("the hook ended without a reply: %w", ran)
	}
	return fmt.Errorf("the hook's reply is not the expected refusal: %.100q", oneLine(out.String()))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func probeReply(nonce string) string { return "nod answers: " + nonce }

// probeInput returns a call of probeTool that contains the field names of all hosts.
func probeInput(event, nonce string) []byte {
	input := map[string]string{"nonce": nonce}
	call := map[string]any{
		"cwd": "/", "session_id": "nod-probe", "hook_event_name": event, "tool_name": probeTool, "tool_input": input,
		"hookName": event, "sessionId": "nod-probe", "toolName": probeTool, "toolInput": input,
	}
	data, err := schemas.Encode(call)
	if err != nil {
		return nil // plain strings can always be encoded
	}
	return data
}

// answerProbe refuses the call of a probe, and says in the reason whether nod replied. To get a reply
// from nod, it reports that the host no longer waits for a request that does not exist. Such a report
// changes nothing.
func (h *run) answerProbe(ctx context.Context, nod Nod) int {
	var input struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal(h.call.Input, &input); err != nil || !schemas.ValidID(input.Nonce) {
		return h.reply(deny("nod refused the call: " + probeTool + " is not a tool"))
	}
	limited, cancel := context.WithTimeoutCause(ctx, reportWithin, errLate)
	defer cancel()
	_, err := callUntil(limited, "trying nod", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, nod.HostResolved(ctx, schemas.HostResolved{SessionID: agents.ID(h.call.SessionID), PendingID: input.Nonce, Reason: "nod doctor tries the hook"})
	})
	if err != nil {
		h.log(err)
		return h.reply(deny("nod did not answer: " + err.Error()))
	}
	return h.reply(deny(probeReply(input.Nonce)))
}

// BlocksWhenGone reports whether the host blocks the call or asks its own user if nod is killed or its
// program is missing. This may not be so if an earlier version of nod wrote the hook i.
func (h Host) BlocksWhenGone(i Installed) bool {
	for _, event := range h.Setup.Blocks {
		if event == i.Event {
			return strings.HasPrefix(i.Command, byShell) && strings.HasSuffix(i.Command, orBlock)
		}
	}
	return true // at other events, the host asks its own user if the hook fails
}
