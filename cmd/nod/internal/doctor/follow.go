package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
)

// follow checks whether the engines have read the newest settings, freezes and sessions, and whether they can
// still read settings and freezes. If an engine is behind, follow looks again after lateBy.
func follow(ctx context.Context, conn *bus.Conn) []Finding {
	const check = "engines"
	late, stale, err := laggards(ctx, conn)
	if err == nil && len(late) > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(lateBy):
		}
		late, stale, err = laggards(ctx, conn)
	}
	if err != nil {
		return []Finding{failed(check, err)}
	}
	var found []Finding
	if len(late) > 0 {
		found = append(found, wrong(check, "these have not read the newest settings, freezes or sessions: "+strings.Join(late, ", "), "see that they reach the servers; an engine that stays behind can be started again"))
	}
	if len(stale) > 0 {
		found = append(found, wrong(check, "these cannot read the settings or freezes, and allow nothing: "+strings.Join(stale, ", "), "look at their logs: settings of a newer nod need newer engines"))
	}
	if len(found) == 0 {
		found = append(found, ok(check, "all have read the same settings, freezes and sessions"))
	}
	return found
}

// lateBy is how long an engine may be late in reading a change.
const lateBy = 2 * time.Second

// laggards returns the engines whose revisions are lower than those of another engine, and the engines that
// have not read the settings or freezes for so long that they allow nothing.
func laggards(ctx context.Context, conn *bus.Conn) (late, stale []string, err error) {
	stats, err := conn.ServiceStats(ctx, "nod-engine")
	if err != nil {
		return nil, nil, err
	}
	newest := map[string]float64{}
	reports := make([]map[string]float64, len(stats))
	for i, s := range stats {
		if err := s.Into(&reports[i]); err != nil {
			return nil, nil, fmt.Errorf("read the statistics of the engine %s: %w", s.ID, err)
		}
		for name, revision := range reports[i] {
			newest[name] = max(newest[name], revision)
		}
	}
	for i, s := range stats {
		for name, revision := range reports[i] {
			if strings.HasSuffix(name, "_revision") && revision < newest[name] {
				late = append(late, s.ID)
				break
			}
		}
		if age := reports[i]["stale_seconds"]; age > 0 { // engines of earlier versions do not report it
			stale = append(stale, fmt.Sprintf("%s (for %.0f s)", s.ID, age))
		}
	}
	slices.Sort(late)
	slices.Sort(stale)
	return late, stale, nil
}
