package web_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// page is the inbox as one person sees it, in a real browser.
type page struct {
	*rig
	tab context.Context
}

// browser names one that is installed. Where none is, the test is skipped, but
// not where everything has to run.
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

// visits opens a login link in a browser of its own, in a window of this size.
func (r *rig) visits(user string, width, height int64) *page {
	r.t.Helper()
	alloc, cancel := chromedp.NewExecAllocator(r.ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser(r.t)), chromedp.NoSandbox, // the tests may run as root, and visit themselves alone
		chromedp.WSURLReadTimeout(time.Minute))...)
	r.t.Cleanup(cancel)
	tab, cancel := chromedp.NewContext(alloc)
	r.t.Cleanup(cancel)
	p := &page{r, tab}
	r.NoError(chromedp.Listen(tab, func(event any) {
		if e, ok := event.(*runtime.EventExceptionThrown); ok {
			r.t.Errorf("the page threw: %s", e.ExceptionDetails.Exception.Description)
		}
	}))
	p.does(chromedp.EmulateViewport(width, height), chromedp.Navigate(r.web.Link(user)))
	p.sees("document.querySelector('.state').hidden")
	return p
}

// does does something to the page, and must be able to.
func (p *page) does(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.NoError(chromedp.Do(p.tab, actions...))
}

// sees waits until a JavaScript expression holds.
func (p *page) sees(expr string) {
	p.t.Helper()
	holds := func() bool {
		yes, err := chromedp.Run(p.tab, chromedp.Evaluate[bool]("Boolean("+expr+")"))
		return err == nil && yes // what is not there yet is an error
	}
	for until := time.Now().Add(30 * time.Second); !holds(); {
		p.True(time.Now().Before(until), "%s never held; the page says: %s", expr, p.text("body"))
	}
}

// value is what an expression is now.
func value[T any](p *page, expr string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.tab, chromedp.Evaluate[T](expr))
	p.NoError(err, expr)
	return v
}

// text is what an element shows.
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

// reads scrolls to the end of what is open.
func (p *page) reads() {
	p.t.Helper()
	p.does(script("document.querySelector('.text').scrollTo(0, 1e6)"))
}

// script runs a script for what it does.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](text)
}

func row(id string) string { return "document.querySelector('li[data-id=" + id + "]')" }

// button is Allow or Deny.
func button(class string) string { return "document.querySelector('.actions ." + class + "')" }

// ready waits until a button would do something.
func (p *page) ready(class string) {
	p.t.Helper()
	p.sees(button(class) + "?.getAttribute('aria-disabled') === 'false'")
}

// ends waits until the outcome stands where the buttons were.
func (p *page) ends(text string) {
	p.t.Helper()
	p.sees("document.querySelector('.outcome')?.innerText.includes('" + text + "')")
	p.sees("!document.querySelector('.actions button')")
}
