package web_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// page is one user's inbox in a real browser.
type page struct {
	*rig
	tab context.Context
}

// browser finds an installed browser. Without one the test is skipped, or fails if
// all tests are required.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no browser is installed: install chromium")
	}
	t.Skip("no browser is installed, so nothing of the page is tested: install chromium")
	return ""
}

// chromium is the one browser of these tests. It starts with the first test that
// needs it and ends with the last.
var chromium struct {
	start sync.Once
	err   error
	ctx   context.Context
	close func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.close != nil {
		chromium.close()
	}
	os.Exit(code)
}

// shared returns the browser, started.
func shared(t *testing.T) context.Context {
	t.Helper()
	path := browser(t)
	chromium.start.Do(func() {
		alloc, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, // tests may run as root, and the browser only visits them
			chromedp.WSURLReadTimeout(time.Minute))...)
		ctx, cancel := chromedp.NewContext(alloc)
		chromium.ctx, chromium.close = ctx, func() { cancel(); end() }
		chromium.err = chromedp.Do(ctx)
	})
	require.NoError(t, chromium.err, "start the browser")
	return chromium.ctx
}

// visits opens a login link in a window of this size with its own cookies.
func (r *rig) visits(user string, width, height int64) *page {
	r.t.Helper()
	tab, cancel := chromedp.NewContext(shared(r.t), chromedp.WithNewBrowserContext())
	r.t.Cleanup(cancel)
	context.AfterFunc(r.ctx, cancel)
	p := &page{r, tab}
	r.NoError(chromedp.Listen(tab, func(event any) {
		if e, ok := event.(*runtime.EventExceptionThrown); ok {
			r.t.Errorf("the page threw: %s", e.ExceptionDetails.Exception.Description)
		}
	}))
	p.does(focused, chromedp.EmulateViewport(width, height), chromedp.Navigate(r.web.Link(user)))
	p.sees("document.querySelector('.state').hidden")
	return p
}

// focused makes a page act as if its window had the focus.
var focused = chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
	_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return err
})

// does runs actions on the page, which must succeed.
func (p *page) does(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.NoError(chromedp.Do(p.tab, actions...))
}

// sees waits until a JavaScript expression is true.
func (p *page) sees(expr string) {
	p.t.Helper()
	holds := func() bool {
		yes, err := chromedp.Run(p.tab, chromedp.Evaluate[bool]("Boolean("+expr+")"))
		return err == nil && yes // an element that is not there yet is an error
	}
	for until := time.Now().Add(time.Minute); !holds(); <-time.After(10 * time.Millisecond) {
		p.True(time.Now().Before(until), "%s never held; the page says: %s", expr, p.text("body"))
	}
}

// value returns the current value of a JavaScript expression.
func value[T any](p *page, expr string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.tab, chromedp.Evaluate[T](expr))
	p.NoError(err, expr)
	return v
}

// text is an element's text.
func (p *page) text(selector string) string {
	p.t.Helper()
	return value[string](p, "document.querySelector('"+selector+"')?.innerText ?? ''")
}

// opens opens a request from the list.
func (p *page) opens(id string) {
	p.t.Helper()
	p.sees(row(id))
	p.does(script(row(id) + ".querySelector('button').click()"))
	p.sees("document.querySelector('dialog').open")
}

// reads scrolls to the end of the open request.
func (p *page) reads() {
	p.t.Helper()
	p.does(script("document.querySelector('.text').scrollTo(0, 1e6)"))
}

// script runs a script for its effect.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](text)
}

func row(id string) string { return "document.querySelector('li[data-id=" + id + "]')" }

// button is the selector of Allow or Deny.
func button(class string) string { return "document.querySelector('.actions ." + class + "')" }

// ready waits until a button is active.
func (p *page) ready(class string) {
	p.t.Helper()
	p.sees(button(class) + "?.getAttribute('aria-disabled') === 'false'")
}

// ends waits until the outcome has replaced the buttons.
func (p *page) ends(text string) {
	p.t.Helper()
	p.sees("document.querySelector('.outcome')?.innerText.includes('" + text + "')")
	p.sees("!document.querySelector('.actions button')")
}
