package voice_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/voice"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

// rig is a voice connector whose Ann, Bob and Mallory each run the client of nod voice.
type rig struct {
	t      *testing.T
	listen string
	people map[string]*person
}

// person is a user with a voice client.
type person struct {
	heard  chan string
	cancel context.CancelFunc
	ended  chan error

	mu    sync.Mutex
	lines []voice.Line
}

func newRig(t *testing.T) *rig {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	r := &rig{t: t, listen: l.Addr().String(), people: map[string]*person{}}
	for _, user := range []string{peopletest.Ann, peopletest.Bob, peopletest.Mallory} {
		r.people[user] = r.listens(user)
	}
	return r
}

func (r *rig) listens(user string) *person {
	ctx, cancel := context.WithCancel(r.t.Context())
	p := &person{heard: make(chan string), cancel: cancel, ended: make(chan error, 1)}
	client := voice.Client{URL: "http://" + r.listen, Token: user + "-a-token-of-a-person", Log: slog.New(slog.DiscardHandler)}
	var done sync.WaitGroup
	r.t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		p.ended <- client.Run(ctx, p.heard, func(l voice.Line) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lines = append(p.lines, l)
			return nil
		})
		close(p.ended)
	})
	return p
}

func (r *rig) Open(log *slog.Logger) people.Carrier { return voice.NewFast(r.listen, log) }

func (r *rig) Read(user string) (all []peopletest.Message) {
	p := r.people[user]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		all = append(all, peopletest.Message{ID: line.PendingID, Text: line.Text})
	}
	return all
}

// Does passes speech to the user's client. It returns false if the client has ended.
func (r *rig) Does(user string, act peopletest.Act) bool {
	p := r.people[user]
	if act.Say == "" {
		return false
	}
	if user == peopletest.Mallory { // the server refuses this client, which then ends
		return <-p.ended == nil
	}
	select {
	case p.heard <- act.Say:
		return true
	case err, open := <-p.ended:
		return open && err == nil
	}
}

func (r *rig) Break(fault peopletest.Fault) {
	if fault == peopletest.Blocked {
		r.people[peopletest.Ann].cancel()
	}
}

func TestTheSuite(t *testing.T) {
	t.Parallel()
	peopletest.Run(t, peopletest.Features{Spoken: true, Replies: true}, func(t *testing.T) peopletest.Rig { return newRig(t) }, "a-token-of-a-person")
}

// Run returns an error that names the setting if its address is in use, or if other machines
// could reach the address without TLS.
func TestTheAddressIsChecked(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for listen, says := range map[string]string{l.Addr().String(): "connectors.voice.listen", "0.0.0.0:4284": "without TLS", "x": "not an address"} {
		err := voice.New(voice.Settings{Listen: listen}, slog.New(slog.DiscardHandler)).Run(t.Context(), nil)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, voice.New(voice.Settings{Listen: l.Addr().String()}, slog.New(slog.DiscardHandler)).Check(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.NoError(t, l.Close())
	err = voice.New(voice.Settings{Listen: l.Addr().String()}, slog.New(slog.DiscardHandler)).Check(ctx)
	require.ErrorContains(t, err, "start nod up")
	require.False(t, errors.Is(err, context.DeadlineExceeded))
}
