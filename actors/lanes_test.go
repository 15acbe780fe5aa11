package actors

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// count is a job that appends its number to the slice seen. It panics if another job of the same key
// runs at the same time. If its field boom is set, it also panics after its work.
type count struct {
	n    int
	busy *atomic.Int32
	seen *[]int
	wg   *sync.WaitGroup
	boom bool
}

func (c count) Run(context.Context) {
	if c.busy.Add(1) != 1 {
		panic("two jobs of one key at a time")
	}
	*c.seen = append(*c.seen, c.n)
	c.busy.Add(-1)
	if c.boom {
		panic("boom")
	}
	c.wg.Done()
}

func (c count) Failed(any) { c.wg.Done() }

func newLanes(t testing.TB) *Lanes {
	sys := NewSystem(slog.New(slog.DiscardHandler))
	t.Cleanup(sys.Stop)
	return sys.Lanes("test")
}

// Lanes that are often empty and busy again lose no job, and keep the order of each sender's jobs.
func TestLanesLoseNothing(t *testing.T) {
	const keys, messages, senders = 50, 200_000, 4
	l := newLanes(t)
	var wg sync.WaitGroup
	wg.Add(messages)
	type keyState struct {
		busy atomic.Int32
		seen []int
	}
	states := make([]keyState, keys)
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for n := s; n < messages; n += senders {
				k := n % keys
				l.Send(strconv.Itoa(k), count{n: n, busy: &states[k].busy, seen: &states[k].seen, wg: &wg, boom: n%1000 == 7})
			}
		})
	}
	sending.Wait()
	wg.Wait()
	require.NoError(t, l.Stop(t.Context()))
	total := 0
	for k := range states {
		total += len(states[k].seen)
		last := map[int]int{} // the number of each sender's last job
		for _, n := range states[k].seen {
			s := n % senders
			if prev, ok := last[s]; ok {
				require.Less(t, prev, n, "key %d: out of order", k)
			}
			last[s] = n
		}
	}
	require.Equal(t, messages, total)
}

// together is a job that waits until all such jobs run at the same time. If its field boom is set,
// the job panics after the wait.
type together struct {
	all  *sync.WaitGroup
	boom bool
}

func (j together) Run(context.Context) {
	j.all.Done()
	j.all.Wait()
	if j.boom {
		panic("boom")
	}
}
func (together) Failed(any) {}

// After many lanes have run at once, maxIdle children stay for later jobs. Even children whose job
// has panicked may be among them. Stop ends all children.
func TestLanesKeepSomeChildrenAndEndThemAll(t *testing.T) {
	l := newLanes(t)
	actors := func() (n int) {
		for _, some := range l.sys.sys.ProcessRegistry.LocalPIDs.LocalPIDs {
			n += some.Count()
		}
		return n
	}
	alone := actors()
	for _, n := range []int{2 * maxIdle, maxIdle} {
		var all sync.WaitGroup
		all.Add(n)
		for key := range n {
			l.Send(strconv.Itoa(key), together{&all, key%2 == 0})
		}
		drained := make(chan struct{})
		l.sys.sys.Root.Send(l.pid, drain{drained})
		<-drained
		require.Eventually(t, func() bool { return actors() == alone+maxIdle }, 10*time.Second, time.Millisecond)
	}
	require.NoError(t, l.Stop(t.Context()))
	require.Equal(t, alone-1, actors())
}

type wait struct{ started, release chan struct{} }

func (w wait) Run(ctx context.Context) {
	close(w.started)
	select {
	case <-w.release:
	case <-ctx.Done():
	}
}
func (wait) Failed(any) {}

func TestLanesStopWaitsForOpenJobs(t *testing.T) {
	l := newLanes(t)
	w := wait{make(chan struct{}), make(chan struct{})}
	l.Send("k", w)
	<-w.started
	stopped := make(chan error)
	go func() { stopped <- l.Stop(context.Background()) }()
	select {
	case <-stopped:
		t.Fatal("stopped while a job ran")
	case <-time.After(20 * time.Millisecond):
	}
	close(w.release)
	require.NoError(t, <-stopped)
}

func TestLanesStopGivesUpWithItsContext(t *testing.T) {
	l := newLanes(t)
	w := wait{make(chan struct{}), make(chan struct{})}
	l.Send("k", w)
	<-w.started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Stop(ctx), context.Canceled)
}

func BenchmarkLanes(b *testing.B) {
	for _, keys := range []int{1, 50, 100_000} {
		b.Run(strconv.Itoa(keys)+"_keys", func(b *testing.B) {
			l := newLanes(b)
			var wg sync.WaitGroup
			wg.Add(b.N)
			for n := range b.N {
				l.Send(strconv.Itoa(n%keys), nop{&wg})
			}
			wg.Wait()
			require.NoError(b, l.Stop(b.Context()))
		})
	}
}

type nop struct{ wg *sync.WaitGroup }

func (n nop) Run(context.Context) { n.wg.Done() }
func (nop) Failed(any)            {}
