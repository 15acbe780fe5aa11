package web_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The page shows the time of an outcome in the browser's time zone: in the message about the outcome, on
// the session's page and in the history. The tooltip contains the zone, and the time in UTC.
func TestOutcomesHaveTheTimeOfTheBrowsersZone(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestTheHistoryPageSaysWhoWhenAndWhere reads the times")
	r := start(t)
	one := r.asks("S", "one", `{"to":"staging"}`)
	r.asks("S", "two", `{"to":"production"}`)
	p := r.visits("ann", 1024, 900)
	p.does(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kathmandu"}) // UTC+5:45
		return err
	}))
	p.goes("#/session/S")
	p.inline("one", "deny")
	d, err := one.Await(r.ctx)
	r.NoError(err)
	local := d.DecidedAt.UTC().Add(5*60*60e9 + 45*60e9)
	shown := func(line string) {
		t.Helper()
		p.sees(line + "?.querySelector('time')")
		text := value[string](p, line+".innerText")
		p.Contains(text, "Denied · Ann · ")
		p.Contains(text, local.Format(":04"))
		p.NotContains(text, "UTC")
		title := value[string](p, line+".querySelector('time').title")
		p.Contains(title, d.DecidedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
		p.Contains(title, "GMT+5:45")
	}
	shown(card("one") + ".querySelector('.outcome')")
	shown("document.querySelector('nod-toasts .outcome')")
	p.goes("#/history")
	shown("document.querySelector('nod-history .outcome.denied')")
	p.goes("#/")
	p.goes("#/session/S")
	shown(card("one") + ".querySelector('.outcome')")
}
