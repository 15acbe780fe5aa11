package people

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// All workers are killed with SIGKILL while they show a thousand prompts. A prompt is shown twice,
// the second time marked as a repeat, only if a worker died between sending it and recording it.
// Each request gets exactly one decision.
func TestKillNineOfAWorker(t *testing.T) {
	t.Parallel()
	prompts, kills := 1000, 5
	if !*rig.Long {
		prompts, kills = 40, 2
		t.Log("40 prompts and 2 kills; -long runs 1000 and 5")
	}
	p := newPhone(t, `"token_env": "NOD_TEST_BOT"`)
	p.Unlimited()
	p.Latency(20 * time.Millisecond) // on a slow network, workers die between sending a prompt and recording it
	p.StartNod()
	workers := []func(){p.worker(), p.worker(), p.worker()}

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	decided := p.storm(ctx, prompts)
	answering, stop := context.WithCancel(ctx)
	var ann sync.WaitGroup
	ann.Go(func() { p.allowsAll(answering) })
	defer func() { stop(); ann.Wait() }()

	for n := range kills {
		due := prompts * (2*n + 1) / (2 * kills)
		require.Eventually(t, func() bool { return len(p.Chat(annOnTG)) >= due }, 4*time.Minute, 5*time.Millisecond)
		for i := range workers {
			workers[i]()
		}
		for i := range workers {
			workers[i] = p.worker()
		}
	}
	for id, d := range decided() {
		require.Equal(t, schemas.Allowed, d.Outcome, id)
		require.Equal(t, schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "telegram"}, d.By)
	}
	require.Eventually(t, func() bool { return p.live() == 0 }, time.Minute, rig.Tick, "a message still has its buttons")
	p.shownOnce(prompts)
	p.loggedOnce(ctx, prompts)
}

// A worker is killed with SIGKILL at each point between its calls to Telegram and its writes. If
// the message's handle is stored, the next worker continues with the same message; otherwise the
// next worker sends the question again. After the decision no message has buttons.
func TestNoLiveButtonOutlivesAKilledWorker(t *testing.T) {
	t.Parallel()
	for point, c := range map[string]struct {
		fault    telegramtest.Fault // the call to Telegram during which the worker is killed
		messages int                // the number of messages about the question at the end
	}{
		"before the handle is stored":     {telegramtest.Fault{Method: "sendMessage", Done: true}, 2},
		"between the handle and the edit": {telegramtest.Fault{Method: "editMessageText"}, 1},
		"before the edit is recorded":     {telegramtest.Fault{Method: "editMessageText", Done: true}, 1},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			p := newPhone(t, `"token_env": "NOD_TEST_BOT"`)
			p.StartNod()
			kill, killed := p.worker(), make(chan struct{})
			c.fault.Then = func() { kill(); close(killed) }
			p.Fail(c.fault)
			agent := p.asks("killed")
			<-killed
			if c.messages == 2 {
				require.Zero(t, p.live(), "no worker knows this message")
			}
			p.worker() // this worker takes over when the killed worker's claim ends
			p.press(p.question("killed"), "Deny")
			require.Equal(t, schemas.Denied, p.hears(agent).Outcome)
			require.Eventually(t, func() bool { return p.live() == 0 }, rig.Patience, rig.Tick)
			require.Len(t, p.Chat(annOnTG), c.messages)
			for i, m := range p.Chat(annOnTG) {
				require.Equal(t, i > 0, strings.Contains(m.First, "Sent again"))
			}
		})
	}
}

// The method storm sends the given number of requests, and returns a function that waits for their decisions.
func (p *phone) storm(ctx context.Context, prompts int) (wait func() map[string]schemas.Decision) {
	conn, err := bus.Join(ctx, bus.Place{DataDir: p.Dir}, roles.AgentID("local"), rig.Quiet())
	require.NoError(p.T, err)
	asker := bus.NewAsker(conn, "local")
	p.T.Cleanup(func() { asker.Close(); conn.Close() })
	decisions := map[string]schemas.Decision{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, 20) // this channel limits the number of concurrent submissions
	wg.Go(func() {
		for n := range prompts {
			room <- struct{}{}
			r := rig.Deploy(fmt.Sprint("storm-", n%10), fmt.Sprintf("storm-%04d", n))
			r.ActionDetails = fmt.Appendf(nil, `{"to":"machine %d"}`, n)
			asked, err := asker.Submit(ctx, r)
			<-room
			if err != nil {
				p.T.Error(err)
				continue
			}
			wg.Go(func() {
				d, err := asked.Await(ctx)
				if err != nil {
					p.T.Errorf("%s heard nothing: %v", r.PendingID, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				decisions[r.PendingID] = d
			})
		}
	})
	return func() map[string]schemas.Decision {
		wg.Wait()
		require.Len(p.T, decisions, prompts)
		return decisions
	}
}

// allowsAll makes Ann press the first button under every message. She presses a button again if it
// is still there after the bot has confirmed all presses.
func (p *phone) allowsAll(ctx context.Context) {
	pressed := map[int64]bool{}
	for ctx.Err() == nil {
		if p.Unconfirmed() == 0 {
			clear(pressed)
		}
		for _, m := range p.Chat(annOnTG) {
			if len(m.Buttons) > 0 && !pressed[m.ID] {
				pressed[m.ID] = true
				p.Press(annOnTG, annOnTG, m.ID, m.Buttons[0].Data, false)
			}
		}
		pause := time.NewTimer(rig.Tick)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// live returns the number of messages with buttons.
func (p *phone) live() (n int) {
	for _, m := range p.Chat(annOnTG) {
		if len(m.Buttons) > 0 {
			n++
		}
	}
	return n
}

// shownOnce requires that each prompt has only one message, or two messages, of which the second is marked as
// a repeat.
func (p *phone) shownOnce(prompts int) {
	times, twice := map[string]int{}, 0
	for _, m := range p.Chat(annOnTG) {
		id, about := requestIn(m)
		if !about {
			continue
		}
		times[id]++
		require.LessOrEqual(p.T, times[id], 2, id)
		if times[id] == 2 {
			twice++
			require.Contains(p.T, m.First, "Sent again", "%s is there twice, and the second does not say so", id)
		}
	}
	require.Len(p.T, times, prompts)
	p.T.Log(prompts, "prompts,", twice, "of them shown twice, and marked")
}

func requestIn(m telegramtest.Message) (id string, ok bool) {
	_, rest, ok := strings.Cut(m.Text, "Request: ")
	id, _, _ = strings.Cut(rest, "\n")
	return id, ok
}

// loggedOnce requires that the log has exactly one decision for each prompt.
func (p *phone) loggedOnce(ctx context.Context, prompts int) {
	conn, err := bus.Join(ctx, bus.Place{DataDir: p.Dir}, roles.ID{Role: roles.OwnerStore}, rig.Quiet())
	require.NoError(p.T, err)
	defer conn.Close()
	times := map[string]int{}
	require.Eventually(p.T, func() bool {
		clear(times)
		err := conn.EachLogged(ctx, func(e schemas.LogEntry) error {
			if e.Kind == schemas.LogDecided {
				times[e.PendingID]++
			}
			return nil
		})
		return err == nil && len(times) >= prompts
	}, rig.Patience, rig.Tick)
	for id, n := range times {
		require.Equal(p.T, 1, n, id)
	}
}
