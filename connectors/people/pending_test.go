package people_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// pagesOf returns n requests in pages of 10. Within a page the oldest request is first, and the second
// page has the oldest of all.
func pagesOf(n int) *pages {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d := &pages{}
	for page := range n {
		var prompts []schemas.Prompt
		for i := range 10 {
			at := noon.Add(time.Duration(page*10+i) * time.Second)
			if page == 1 {
				at = at.Add(-time.Hour)
			}
			prompts = append(prompts, schemas.Prompt{SessionID: "s", PendingID: fmt.Sprint("p", page*10+i), Request: schemas.Request{CreatedAt: at}})
		}
		d.of = append(d.of, prompts)
	}
	return d
}

// Oldest and FindPending read no more pages than they need.
func TestListsReadTheirPagesOnly(t *testing.T) {
	for _, c := range []struct {
		most, pages int
		first       string
	}{{5, 1, "p0"}, {10, 2, "p10"}, {15, 2, "p10"}, {100, 10, "p10"}} {
		d := pagesOf(10)
		oldest, more, err := people.Oldest(t.Context(), d, schemas.Query{}, c.most, nil)
		require.NoError(t, err)
		require.Len(t, oldest, c.most)
		require.Equal(t, c.most < 100, more)
		require.Equal(t, c.pages, d.read, c.most)
		require.Equal(t, c.first, oldest[0].PendingID)
	}
	d := pagesOf(10)
	p, found, err := people.FindPending(t.Context(), d, schemas.Query{}, func(p *schemas.Prompt) bool { return p.PendingID == "p17" })
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "p17", p.PendingID)
	require.Equal(t, 2, d.read)
	_, found, err = people.FindPending(t.Context(), d, schemas.Query{}, func(*schemas.Prompt) bool { return false })
	require.NoError(t, err)
	require.False(t, found)
}

// A request that changes while its list is read is listed once.
func TestARequestOnTwoPagesIsListedOnce(t *testing.T) {
	d := pagesOf(2)
	d.of = append(d.of, d.of[0][:3])
	oldest, more, err := people.Oldest(t.Context(), d, schemas.Query{}, 50, nil)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, oldest, 20)
	first := func(p *schemas.Prompt) bool { return p.PendingID == "p0" || p.PendingID == "p9" }
	oldest, _, err = people.Oldest(t.Context(), d, schemas.Query{}, 50, first)
	require.NoError(t, err)
	require.Len(t, oldest, 2)
	n := people.Newest{Most: 5}
	decided := schemas.Prompt{PendingID: "p", Decision: &schemas.Decision{DecidedAt: time.Unix(1, 0)}}
	require.NoError(t, n.Add([]schemas.Prompt{decided}))
	decided.Revision = 2
	require.NoError(t, n.Add([]schemas.Prompt{decided}))
	require.Equal(t, []schemas.Prompt{decided}, n.Prompts())
}

type brokenDesk struct{ *pages }

func (brokenDesk) EachPending(context.Context, schemas.Query, func([]schemas.Prompt) error) error {
	return errors.New("broken")
}

// If reading a page fails, the result is an error and not an incomplete list.
func TestABrokenListHasNoResult(t *testing.T) {
	oldest, _, err := people.Oldest(t.Context(), brokenDesk{}, schemas.Query{}, 5, nil)
	require.Error(t, err)
	require.Empty(t, oldest)
	_, found, err := people.FindPending(t.Context(), brokenDesk{}, schemas.Query{}, func(*schemas.Prompt) bool { return true })
	require.Error(t, err)
	require.False(t, found)
	_, found, err = people.Codes("secret").Find(t.Context(), brokenDesk{}, "abcd", "4711")
	require.Error(t, err)
	require.False(t, found)
}

func TestNewestKeepsTheNewestDecisions(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	page := func(ages ...int) (all []schemas.Prompt) {
		for _, age := range ages {
			all = append(all, schemas.Prompt{PendingID: fmt.Sprint(age), Decision: &schemas.Decision{DecidedAt: noon.Add(-time.Duration(age) * time.Second)}})
		}
		return all
	}
	n := people.Newest{Most: 3, Keep: func(p *schemas.Prompt) bool { return p.PendingID != "2" }}
	for _, p := range [][]schemas.Prompt{page(5, 2, 9), page(1, 7), {{}}, page(3)} {
		require.NoError(t, n.Add(p))
	}
	var ids []string
	for _, p := range n.Prompts() {
		ids = append(ids, p.PendingID)
	}
	require.Equal(t, []string{"1", "3", "5"}, ids)
	require.True(t, n.More)
}

// A list in a chat shows times in the time zone of the person who reads it.
func TestADeadlineIsInTheRecipientsZone(t *testing.T) {
	now := time.Date(2026, 1, 1, 22, 30, 0, 0, time.UTC)
	p := schemas.Prompt{Deadline: now.Add(time.Hour)}
	require.Equal(t, "23:30 UTC", people.DeadlineText(&p, now))
	p.Zone = "Europe/Berlin"
	require.Equal(t, "2 Jan 00:30 CET", people.DeadlineText(&p, now.Add(-10*time.Hour)))
	require.Equal(t, "00:30 CET", people.DeadlineText(&p, now.Add(40*time.Minute)))
	p.Zone = "no/such"
	require.Equal(t, "23:30 UTC", people.DeadlineText(&p, now))
}
