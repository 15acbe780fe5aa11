package discord_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/discord"
	"github.com/nodbus/nod/connectors/people/discord/discordtest"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// If a connection ends, nod continues the session over another connection, and gets the presses that came
// in between.
func TestASessionIsResumed(t *testing.T) {
	for name, end := range map[string]func(*world){
		"asked":   func(w *world) { w.Reconnect() },
		"broken":  func(w *world) { w.Drop(0) },
		"closed":  func(w *world) { w.Drop(4000) },
		"restart": func(w *world) { w.Drop(1001) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Patient()
			m := w.shows()
			end(w)
			w.presses(m, "✅ Allow once")
			w.waits(func() bool { return len(w.desk.Answers()) == 1 })
			w.waits(func() bool { return w.Connected() == 1 })
			w.Equal(1, w.Sessions())
			w.Equal(1, w.Resumed())
			w.Zero(w.count(discordtest.NoResponse))
		})
	}
}

// A press that Discord has reported as failed does not count, even if nod gets it later. The prompt keeps
// its buttons.
func TestAFailedPressDoesNotCount(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	release := w.Hold()
	w.Drop(0)
	w.presses(m, "✅ Allow once") // the press fails at once, because no connection is open
	w.Command(ann, "thaw", false)
	w.told(discordtest.NoResponse)
	release()
	w.waits(func() bool { return w.count("Nothing changed: nod could not take this in time") == 2 })
	w.Empty(w.desk.Answers())
	w.Zero(w.desk.Freezes())
	w.presses(m, "✅ Allow once")
	w.told("Allowed once")
}

// slow is a desk. It submits an answer only after it has received a value from the channel answers. It
// marks an interaction only after the channel marks is closed.
type slow struct {
	*peopletest.SingleDesk
	answers, marks chan struct{}
}

func (d *slow) Answer(ctx context.Context, a schemas.Answer) (schemas.Decision, error) {
	<-d.answers
	return d.SingleDesk.Answer(ctx, a)
}

func (d *slow) MarkHandled(ctx context.Context, id string, until time.Time) (bool, error) {
	select {
	case <-d.marks:
		return d.SingleDesk.MarkHandled(ctx, id, until)
	default:
		return false, schemas.Errorf(schemas.CodeUnavailable, "no engine")
	}
}

// A press is acknowledged in time even if an earlier press of the same person still waits for nod.
func TestAPressBehindAnotherOneIsAcknowledged(t *testing.T) {
	w := newWorld(t)
	desk := &slow{w.desk, make(chan struct{}), make(chan struct{})}
	close(desk.marks)
	w.ends()
	w.runsOn(desk)
	w.waits(func() bool { return w.Connected() == 1 })
	m := w.shows()
	w.presses(m, "⛔ Deny")
	w.presses(m, "✅ Allow once")
	w.waits(func() bool { return w.Unanswered() == 0 })
	close(desk.answers)
	w.waits(func() bool { return len(w.desk.Answers()) == 2 })
	w.Zero(w.count(discordtest.NoResponse))
}

// While nod cannot be reached, two workers handle the same press. The person still gets each reply once.
func TestTwoWorkersWithoutNodReplyOnce(t *testing.T) {
	w := newWorld(t)
	desk := &slow{w.desk, make(chan struct{}), make(chan struct{})}
	close(desk.answers)
	w.ends()
	w.runsOn(desk)
	w.runsOn(desk)
	w.waits(func() bool { return w.Connected() == 2 })
	m := w.shows()
	w.presses(m, "✅ Allow once")
	w.told(people.Recording)
	close(desk.marks)
	w.told("Allowed once")
	w.waits(func() bool { return len(w.question().Buttons) == 0 })
	w.Command(ann, "pending", false) // a worker handles the interactions of one person in order
	w.told("1 waiting")
	w.Equal(1, w.count(people.Recording))
	w.Equal(1, w.count("Allowed once"), "%v", w.Server.Read(ann))
}

// If Discord does not reply to a heartbeat, nod opens another connection.
func TestADeadConnectionIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.Deafen(20*time.Millisecond, true)
	w.Reconnect() // the new connection has the short interval, and its heartbeats get no replies
	ended := make(chan error, 1)
	go func() { ended <- w.stopped() }()
	require.ErrorContains(t, <-ended, "no reply to a heartbeat", "after several short connections in a row")
	w.Equal(1, w.Sessions(), "each connection resumed the session")
}

// nod keeps a connection whose heartbeats Discord receives and answers.
func TestHeartbeatsKeepAConnection(t *testing.T) {
	w := newWorld(t)
	w.Deafen(5*time.Millisecond, false)
	w.Reconnect()
	w.waits(func() bool { return w.Beats() > 20 })
	w.Equal(1, w.Connected())
}

// The error of Run says whether another try can help, and when.
func TestTheEndOfAConnection(t *testing.T) {
	temporary := func(e *people.Error) bool { return !e.Permanent && !e.Unreachable && e.After == 0 }
	permanent := func(e *people.Error) bool { return e.Permanent }
	for name, c := range map[string]struct {
		end  func(*world)
		want func(*people.Error) bool
		text string
	}{
		"session unknown":  {func(w *world) { w.Forget() }, temporary, "the server ended the session"},
		"timed out":        {func(w *world) { w.Drop(4009) }, temporary, "4009"},
		"token refused":    {func(w *world) { w.Drop(4004) }, permanent, "Discord refuses the token"},
		"too many servers": {func(w *world) { w.Drop(4011) }, permanent, "4011"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ended := make(chan error, 1)
			go func() { ended <- w.stopped() }()
			c.end(w)
			err := <-ended
			var e *people.Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.True(t, c.want(e), "%+v", e)
			require.ErrorContains(t, err, c.text)
			require.NotContains(t, err.Error(), "secretsecret")
		})
	}
}

// Discord allows a limited number of new sessions per day.
func TestTheLimitOfSessionsIsObeyed(t *testing.T) {
	w := newWorld(t)
	w.Starts(0)
	_, _, stopped := w.runs()
	var e *people.Error
	w.True(errors.As(stopped(), &e))
	w.Equal(time.Hour, e.After)
}

// Discord sends a press to every connection of the bot. One worker handles it, and the person gets one
// reply.
func TestOneWorkerHandlesAPress(t *testing.T) {
	w := newWorld(t)
	w.runs()
	w.waits(func() bool { return w.Connected() == 2 })
	m := w.shows()
	w.presses(m, "⛔ Deny")
	w.told("Denied")
	w.Command(ann, "thaw", false)
	w.told("Thawed")
	w.Command(ann, "pending", false) // a worker handles the interactions of one person in order
	w.told("1 waiting")
	w.stop()
	w.Len(w.desk.Answers(), 1)
	w.Equal(1, w.desk.Freezes())
	w.Equal(1, w.count("Thawed"))
}

// If Discord limits the rate of calls, the worker waits as long as Discord says, or 30 s if Discord
// names no time.
func TestRateLimitsAreObeyed(t *testing.T) {
	w := newWorld(t)
	for want, fault := range map[time.Duration]discordtest.Fault{
		30 * time.Second:        {Status: http.StatusTooManyRequests},
		1500 * time.Millisecond: {Status: http.StatusTooManyRequests, RetryAfter: 1.5},
		24 * time.Hour:          {Status: http.StatusTooManyRequests, RetryAfter: 99999999},
	} {
		w.rig.Fail(fault)
		_, err := w.carrier.Prompt(w.ctx, w.desk.Prompt)
		var e *people.Error
		w.True(errors.As(err, &e))
		w.Equal(want, e.After)
	}
	w.Empty(w.Chat(ann))
}

// The error that Discord returns decides whether the worker sends a message again.
func TestErrorsOfDiscordAreToldApart(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		fault discordtest.Fault
		want  people.Error
	}{
		{discordtest.Fault{Call: "create DM", Status: 400, Code: 50033}, people.Error{Unreachable: true}},
		{discordtest.Fault{Call: "create DM", Status: 429, Code: 40003, RetryAfter: 3}, people.Error{After: 3 * time.Second}},
		{discordtest.Fault{Status: 403, Code: 50278}, people.Error{Unreachable: true}},
		{discordtest.Fault{Status: 403, Code: 20028}, people.Error{After: 30 * time.Second}},
		{discordtest.Fault{Status: 401}, people.Error{Permanent: true}},
		{discordtest.Fault{Status: 400, Code: 50035}, people.Error{Permanent: true}},
		{discordtest.Fault{Status: 503, Code: 130000}, people.Error{}},
	} {
		w.rig.Fail(c.fault)
		_, err := w.carrier.Prompt(w.ctx, w.desk.Prompt)
		var e *people.Error
		w.True(errors.As(err, &e))
		w.Equal(c.want, people.Error{Unreachable: e.Unreachable, Permanent: e.Permanent, After: e.After}, "%v", err)
	}
	m := w.shows()
	w.Delete(ann)
	ref := people.Ref("77" + ann + "/" + m.ID)
	ended := w.desk.Prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.TimedOut}
	w.NoError(w.carrier.Settle(w.ctx, ref, ended), "a deleted message")
	var e *people.Error
	w.True(errors.As(w.carrier.(people.Reviser).Revise(w.ctx, ref, w.desk.Prompt), &e))
	w.True(e.Permanent)
	for _, recipient := range []string{"ann", "0", "-1", "007", "1/../2"} {
		p := w.desk.Prompt
		p.Recipient = recipient
		_, err := w.carrier.Prompt(w.ctx, p)
		w.ErrorContains(err, "is not a Discord user id")
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for want, args := range map[string][2]string{
		"":                         {"", discordtest.Token},
		"has the wrong form":       {"", "secret secret"},
		"must begin with https://": {"http://proxy.example/api", discordtest.Token},
	} {
		_, err := discord.New(args[0], args[1], slog.New(slog.DiscardHandler))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret secret")
	}
	for text, want := range map[string]string{
		`{"token_env": "B"}`:                     "",
		`{}`:                                     "needs token_env or token_file",
		`{"token_env": "B", "token_file": "/b"}`: "needs token_env or token_file",
		`{"token_env": "B", "token": "x"}`:       "token",
		`{"token_env": "B", "base_url": "discord.com"}`: "base_url",
	} {
		_, err := schemas.DecodeSettings([]byte(`{"connectors": {"discord": `+text+`}}`), discord.Channel.Settings)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, strings.TrimSpace(text))
	}
	w := newWorld(t)
	require.NoError(t, w.carrier.(*discord.Carrier).Check(t.Context()))
	other, err := discord.New(w.URL(), "other", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.ErrorContains(t, other.Check(t.Context()), "Discord refuses the token")
}
