package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/internal/bench"
	"github.com/nodbus/nod/schemas"
)

// BenchmarkStandingAnswers compares a session with 10,000 standing answers to a session with one. It
// measures a call that a standing answer allows, and a call that a person answers. The metric many/one
// is the ratio of the median latencies.
func BenchmarkStandingAnswers(b *testing.B) {
	const many = 10_000
	bySync(b, func(b *testing.B, r *rig) {
		conn, err := bus.Connect(r.ctx, bus.Options{URL: r.url, Name: "bench", Inbox: "_INBOX.bench"})
		require.NoError(b, err)
		defer conn.Close()
		store, err := bus.OpenStore(r.ctx, conn, 1)
		require.NoError(b, err)
		give := func(session string, n int) {
			for i := range n {
				g := schemas.StandingAnswer{
					GrantID: fmt.Sprint("g-", i), Scope: schemas.ScopeSession, SessionID: session, Agent: "local",
					Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make", fmt.Sprint("target", i)}, Project: "/workspace", Dirs: []string{"/workspace"}}},
					By:    schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}, CreatedAt: time.Now().UTC(),
				}
				_, err := store.Sessions.Put(r.ctx, "standing.session."+session+"."+g.GrantID, schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{g}}, 0, 0)
				require.NoError(b, err)
			}
		}
		give("many", many)
		give("one", 1)
		allowed := func(session string) func() error {
			return func() error {
				q := bench.Request(session, "Bash", `{"command":"make target0","cwd":"/workspace"}`, schemas.ActionCommand)
				q.Project = "/workspace"
				return r.nod.Ask(r.ctx, q, schemas.ByPolicy)
			}
		}
		asked := func(session string) func() error { return func() error { return r.nod.Person(r.ctx, session) } }
		require.NoError(b, allowed("many")()) // this call is not measured: it makes the engine read all standing answers
		for name, works := range map[string][2]func() error{
			"allowed": {allowed("many"), allowed("one")}, "asked": {asked("many"), asked("one")},
		} {
			b.Run(name, func(b *testing.B) {
				var times [2][]time.Duration
				for b.Loop() {
					for i, w := range works {
						start := time.Now()
						require.NoError(b, w())
						times[i] = append(times[i], time.Since(start))
					}
				}
				b.ReportMetric(ratio(times[0], times[1]), "many/one")
				b.ReportMetric(float64(median(times[0]).Microseconds()), "many-µs")
			})
		}
	})
}
