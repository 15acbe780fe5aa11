package web_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"runtime/debug"
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

// browser is a browser program that several tests share. The first test that needs the program starts it,
// and TestMain ends it.
type browser struct {
	names []string // the names of the browser's program, in order of preference
	start sync.Once
	err   error
	ctx   context.Context
	close func()
}

// The tests use the headless shell, which needs a third of the CPU time of a full browser. Only a full
// browser can show notifications.
var (
	headless = &browser{names: append([]string{"chromium-headless-shell", "chrome-headless-shell"}, whole.names...)}
	whole    = &browser{names: []string{"chromium", "chromium-browser", "google-chrome", "chrome"}}
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait for pages and deadlines, so many can run at a time
	debug.SetGCPercent(400)            // a nod in a test has little memory, and would collect garbage often
	flag.Parse()
	if testing.Short() { // .ci/run gives -short with the race detector, which multiplies CPU time
		_ = flag.Set("test.parallel", "4")
	}
	code := m.Run()
	for _, b := range []*browser{headless, whole} {
		if b.close != nil {
			b.close()
		}
	}
	os.Exit(code)
}

// program returns the path of the installed browser. If no browser is installed, it skips the test, or
// fails the test if CI=true.
func (b *browser) program(t *testing.T) string {
	t.Helper()
	for _, name := range b.names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	without := "no browser is installed, so this test of the page cannot run: install " + b.names[0]
	if os.Getenv("CI") == "true" {
		t.Fatal(without)
	}
	t.Skip(without)
	return ""
}

// running starts the browser if it is not running, and returns its context.
func (b *browser) running(t *testing.T) context.Context {
	t.Helper()
	path := b.program(t)
	b.start.Do(func() {
		alloc, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, // root cannot use the sandbox; the browser visits only pages of the tests
			chromedp.Flag("renderer-process-limit", "1"), // a new process for each window would need more CPU time than its page
			chromedp.WSURLReadTimeout(time.Minute))...)
		ctx, cancel := chromedp.NewContext(alloc)
		b.ctx, b.close = ctx, func() { cancel(); end() }
		b.err = chromedp.Do(ctx)
	})
	require.NoError(t, b.err, "start the browser")
	return b.ctx
}

// visits opens a login link of the user in a new window of this size, which shares no cookies with other
// windows.
func (r *rig) visits(user string, width, height int64) *page {
	r.t.Helper()
	return r.visitsIn(headless, user, width, height)
}

// visitsIn is like visits, in the given browser.
func (r *rig) visitsIn(b *browser, user string, width, height int64) *page {
	r.t.Helper()
	tab, cancel := chromedp.NewContext(b.running(r.t), chromedp.WithNewBrowserContext())
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

// does runs actions on the page and fails the test if one of them fails.
func (p *page) does(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	p.NoError(chromedp.Do(p.tab, actions...))
}

// sees waits, for three minutes at most, until a JavaScript expression is true. A script in the
// page evaluates it repeatedly, because a message to the browser for each evaluation would take
// longer.
func (p *page) sees(expr string) {
	p.t.Helper()
	look := "(async () => {" +
		"for (const end = Date.now() + 2000; Date.now() < end; await new Promise((next) => setTimeout(next, 50)))" +
		" try { if (" + expr + ") return true } catch {}" + // expr throws while one of its elements does not exist
		"return false })()"
	holds := func() bool {
		yes, err := chromedp.Run(p.tab, chromedp.Evaluate[bool](look, chromedp.EvalAwaitPromise))
		return err == nil && yes // ignore the error of a page that is just reloading
	}
	for until := time.Now().Add(3 * time.Minute); !holds(); <-time.After(10 * time.Millisecond) {
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

// text returns the text of the first element that matches selector, or "".
func (p *page) text(selector string) string {
	p.t.Helper()
	return value[string](p, "document.querySelector('"+selector+"')?.innerText ?? ''")
}

// opens opens a request's dialog from the inbox.
func (p *page) opens(id string) {
	p.t.Helper()
	p.sees(row(id))
	p.does(script(row(id) + ".querySelector('button').click()"))
	p.sees("document.querySelector('dialog').open")
}

// reads scrolls through the text that the user must read in the dialog, by a little less than one screen
// at a time.
func (p *page) reads() {
	p.t.Helper()
	p.readsBy("document.querySelector('.text')", "document.querySelector('dialog .hint')")
}

// readsBy scrolls an element from its beginning until the page's hint no longer asks the user to read on.
// If the hint is about an unconfirmed denial, Allow must be active too. On a busy machine the page may
// miss a part that was in view for a short time; readsBy then scrolls from the beginning again, more
// slowly.
func (p *page) readsBy(scrolled, hint string) {
	p.t.Helper()
	p.does(script(scrolled + ".scrollTop = 0; globalThis.turned = Date.now(); globalThis.pause = 300"))
	p.sees(`(() => {
		const says = ` + hint + `.innerText;
		if (!/^(Read (to the end|the part|the lasting rule)|With this denial)/.test(says)) return true;
		if (says.startsWith("With") && ` + button("allow") + `.getAttribute('aria-disabled') === 'false') return true;
		const at = ` + scrolled + `, now = Date.now();
		if (now - turned < pause) return false;
		globalThis.turned = now;
		const before = at.scrollTop;
		at.scrollTop += at.clientHeight * 0.8;
		if (at.scrollTop > before) return false;
		at.scrollTop = 0;
		globalThis.pause *= 2;
	})()`)
}

// script returns an action that runs a script and ignores its value.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](text)
}

func row(id string) string { return "document.querySelector('li[data-id=" + id + "]')" }

// button returns a JavaScript expression for one of the dialog's buttons: "allow" or "deny".
func button(class string) string { return "document.querySelector('.actions ." + class + "')" }

// ready waits until the user can click a button.
func (p *page) ready(class string) {
	p.t.Helper()
	p.sees(button(class) + "?.getAttribute('aria-disabled') === 'false'")
}

// ends waits until an outcome with this text is shown.
func (p *page) ends(text string) {
	p.t.Helper()
	p.sees("[...document.querySelectorAll('.outcome')].some((e) => e.innerText.includes('" + text + "'))")
}
