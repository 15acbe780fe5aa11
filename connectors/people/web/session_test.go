package web_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nodbus/nod/schemas"
)

// card returns a JavaScript expression for a request on the page of its session.
func card(id string) string { return "document.querySelector('nod-session li[data-id=" + id + "]')" }

// goes opens a view of the page.
func (p *page) goes(hash string) {
	p.t.Helper()
	p.does(script("location.hash = '" + hash + "'"))
}

// inline waits until a button in a card is active, and then clicks the button.
func (p *page) inline(id, class string) {
	p.t.Helper()
	b := card(id) + "?.querySelector('.actions ." + class + "')"
	p.sees(b + "?.getAttribute('aria-disabled') === 'false'")
	p.does(chromedp.Click("li[data-id=" + id + "] .actions ." + class))
}

func TestASessionsPageIsItsTimelineAndAnswersInPlace(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.asks("S", "one", `{"to":"staging"}`)
	r.asks("T", "other", `{}`)
	r.terminal("bob", "S", "one", "allow_once")
	two := r.asks("S", "two", `{"to":"production"}`)
	three := r.asks("S", "three", `{"to":"the moon"}`)
	p := r.visits("ann", 1024, 900)
	p.sees(row("two"))
	p.does(chromedp.Click(".group[data-session=S] .session"))
	p.sees(card("three"))
	p.Equal("one,two,three", value[string](p, "[...document.querySelectorAll('nod-session li[data-id]')].map((e) => e.dataset.id).join()"), "in the order of asking, of this session alone")
	p.Contains(p.text("nod-session li[data-id=one]"), "Allowed once · Bob")
	p.Contains(p.text("nod-session li[data-id=two]"), "production")
	p.Equal("H2", value[string](p, "document.activeElement.tagName"), "no button has the focus")

	p.inline("two", "allow")
	p.sees(card("two") + ".querySelector('.outcome')?.innerText.includes('Allowed once · Ann')")
	p.sees("!" + card("two") + ".querySelector('.actions button')")
	d, err := two.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Allowed, d.Outcome)

	p.does(chromedp.SendKeys("li[data-id=three] .message textarea", "not on Fridays"))
	p.inline("three", "deny")
	p.sees(card("three") + ".querySelector('.outcome')?.innerText.includes('Denied · Ann')")
	d, err = three.Await(r.ctx)
	r.NoError(err)
	r.Equal("not on Fridays", d.Message)

	r.asks("S", "four", `{}`) // this request arrives while the page is open, and is decided on another channel
	p.sees(card("four") + "?.querySelector('.actions button')")
	r.terminal("bob", "S", "four", "reject_once")
	p.sees(card("four") + ".querySelector('.outcome')?.innerText.match(/Denied · Bob · .* · terminal/)")
	p.sees("!" + card("four") + ".querySelector('.actions button')")
	p.True(value[bool](p, "!"+card("other")))

	p.does(script(`const s = document.querySelector("nod-session"), decided = s.decided;
		s.decided = function (request) { globalThis.told = request; return decided.call(this, request); }`))
	_, err = r.asker.Submit(r.ctx, shell("S", "ruled", "ls -l")) // a rule decides the request ruled
	r.NoError(err)
	p.sees(card("ruled") + "?.innerText.includes('the built-in rules')")
	p.Equal(int64(5), value[int64](p, "document.querySelectorAll('nod-session .timeline > li').length"), "each once")
	p.does(script(`for (const digest of [told.digest, "another"]) document.querySelector("nod-session").decided({ ...told, digest })`))
	p.Equal(int64(6), value[int64](p, "document.querySelectorAll('nod-session .timeline > li').length"), "another content under the same id is another row")
}

// When a card appears or changes, the cards below it move. For a moment afterwards, no button on the
// session's page works.
func TestInlineButtonsAreInertWhileCardsMove(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestButtonsAreInertAfterAChange is the same for the dialog")
	r := start(t)
	r.asks("S", "one", `{}`)
	r.asks("S", "two", `{"to":"production"}`)
	p := r.visits("ann", 1024, 2000)
	p.goes("#/session/S")
	b := card("two") + "?.querySelector('.actions .allow')"
	p.sees(b + "?.getAttribute('aria-disabled') === 'false'")
	// The script clicks Allow at the moment when the card above changes and Allow moves. The user
	// meant this click for the old layout.
	p.does(script(`new MutationObserver((_, o) => {
		if (!` + card("one") + `.querySelector('.outcome')) return;
		o.disconnect(); ` + b + `.click(); globalThis.clicked = true;
	}).observe(` + card("one") + `, {childList: true, subtree: true})`))
	r.terminal("bob", "S", "one", "reject_once")
	p.sees("globalThis.clicked")
	p.sees(b + "?.getAttribute('aria-disabled') === 'false'")
	r.listed(r.opens("bob"), "two")
}

// A user has the input lock of a session only while using the page of that session.
func TestActingOnASessionsPageTakesItsInputLock(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestASessionsPageIsItsTimelineAndAnswersInPlace answers there")
	r := start(t)
	r.asks("S", "one", `{}`)
	bob := r.opens("bob")
	r.listed(bob, "one")
	holder := func() string {
		lock, _ := bob.gets("session.lock.acquire", fields{"session_id": "S"})
		if lock.Payload.Granted {
			bob.gets("session.lock.release", fields{"session_id": "S"})
		}
		return lock.Payload.Holder
	}
	p := r.visits("ann", 1024, 768)
	p.does(chromedp.Click("h1")) // a click on the inbox page takes no lock
	p.goes("#/session/S")
	p.sees(card("one"))
	p.Equal("Bob", holder(), "looking alone holds nothing")

	p.does(chromedp.Click("nod-session h2"))
	p.sees("document.querySelector('nod-session').innerText.includes('You have the input lock')")
	p.Equal("Ann", holder())
	// Move the clock of this page forward by a minute without input.
	p.does(script("const real = Date.now; Date.now = () => real() + 61_000; dispatchEvent(new Event('blur'))"))
	p.sees("document.querySelector('nod-session').innerText.includes('the input lock was released')")
	p.Equal("Bob", holder())

	p.does(chromedp.Click("nod-session h2"))
	p.sees("document.querySelector('nod-session').innerText.includes('You have the input lock')")
	p.Equal("Ann", holder())
	p.goes("#/") // the lock is released when the user leaves the page
	r.Eventually(func() bool { return holder() == "Bob" }, 20*time.Second, 20*time.Millisecond)
}
