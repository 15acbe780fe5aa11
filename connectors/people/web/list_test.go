package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nodbus/nod/schemas"
)

// rowIDs is a script that returns the ids of the visible rows, in their order.
const rowIDs = `[...document.querySelectorAll(".rows li[data-id]")].filter((e) => e.checkVisibility()).map((e) => e.dataset.id).join()`

func TestTheInboxGroupsBySessionAndSorts(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, s := range [][3]string{{"S", "one", "npm run build"}, {"T", "two", "rm -rf build"}, {"S", "three", "rm -rf dist"}, {"U", "four", "make release"}} {
		request := shell(s[0], s[1], s[2])
		request.SessionLabel, request.AgentName, request.Project = "label-"+s[0], "Claude Code", "/home/ann/app"
		r.submits(request)
	}
	p := r.visits("ann", 1024, 768)
	p.sees(rowIDs + " === 'one,three,two,four'")
	p.Equal("label-S,label-T,label-U", value[string](p, "[...document.querySelectorAll('.group .session')].map((e) => e.innerText).join()"))
	p.Contains(p.text(".group .head"), "Claude Code · app")
	p.sets("nod-inbox [aria-label=Order]", "age")
	p.does(script("document.querySelector('nod-inbox [aria-label=Order]').dispatchEvent(new Event('change'))"))
	p.sees(rowIDs + " === 'one,two,three,four'")
	p.sets("nod-inbox [aria-label=Order]", "risk")
	p.does(script("document.querySelector('nod-inbox [aria-label=Order]').dispatchEvent(new Event('change'))"))
	p.sees(rowIDs + " === 'two,three,one,four'")
	p.sets("nod-inbox [type=search]", "label-s")
	p.sees(rowIDs + " === 'three,one'")
	p.does(script("location.reload()"))
	p.sees(rowIDs + " === 'two,three,one,four'") // the browser has stored the order that the user chose
}

// The list and the open request are side by side in a wide window. In a narrow window the request
// covers the list, and the user can neither click nor focus the covered list.
func TestTwoPanes(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestTheInboxGroupsBySessionAndSorts shows the same list in one pane")
	r := start(t)
	r.asks("S", "one", `{"to":"production"}`)
	for _, s := range []struct {
		width  int64
		beside bool
	}{{1440, true}, {900, true}, {899, false}, {360, false}} {
		p := r.visits("ann", s.width, 740)
		p.opens("one")
		p.ready("allow")
		p.Equal(s.beside, value[bool](p, row("one")+".getBoundingClientRect().right <= document.querySelector('dialog').getBoundingClientRect().left"), s.width)
		p.Equal(!s.beside, value[bool](p, "document.querySelector('main').inert"), s.width)
		p.does(chromedp.Click(".close"))
		p.sees("!document.querySelector('main').inert")
	}
}

// The page stays quick with 1000 requests, because the browser does not
// lay out rows outside the window.
func TestManyRows(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestTheInboxGroupsBySessionAndSorts lists fewer requests")
	r := start(t)
	const n = 1000
	r.pours(n, `{"text":"x"}`)()
	p := r.visits("ann", 1440, 900)
	p.sees(fmt.Sprintf("document.querySelectorAll('.rows li[data-id]').length === %d", n))
	p.does(script(`globalThis.skipped = -1; requestAnimationFrame(() => requestAnimationFrame(() => {
		globalThis.skipped = [...document.querySelectorAll(".rows li[data-id]")].filter((e) => !e.firstElementChild.checkVisibility({contentVisibilityAuto: true})).length; }))`))
	p.sees("globalThis.skipped >= 0")
	p.Greater(value[int64](p, "globalThis.skipped"), int64(n*8/10))
	p.does(script("document.querySelector('main').scrollTo(0, 1e7)"))
	p.opens(fmt.Sprint("r", n-1))
	p.ready("allow")
}

func TestTheSessionsPage(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.scenes()
	r.terminal("bob", "deploy", "r-5", "reject_once")
	p := r.visits("ann", 1024, 768)
	p.goes("#/sessions")
	item := func(session string) string {
		return "document.querySelector('.session-item[data-session=" + session + "]')"
	}
	p.sees(item("deploy"))
	text := value[string](p, item("docs")+".innerText")
	for _, words := range []string{"waiting for you", "Claude Code · docs · devbox", "rm -rf build", "2 asked this hour", "1 standing"} {
		p.Contains(text, words)
	}
	p.Contains(value[string](p, item("deploy")+".innerText"), "working")
	p.does(chromedp.Click(".session-item[data-session=docs] .session"))
	p.sees(card("r-4"))
	p.Equal("Sessions", value[string](p, "document.querySelector('nav [aria-current=page]').innerText"))
}

// A user can answer all requests of a session with two presses. Allowing them is possible only after
// each request was in view.
func TestAWholeSessionIsAnsweredTogether(t *testing.T) {
	t.Parallel()
	r := start(t)
	for i := range 3 {
		r.asks("S", fmt.Sprint("r", i), fmt.Sprintf(`{"to":"%s"}`, strings.Repeat("long ", 200*(i+1))))
	}
	r.asks("T", "other", `{}`)
	p := r.visits("ann", 1024, 768)
	p.goes("#/session/S")
	p.sees(card("r2"))
	all := func(class string) string { return "document.querySelector('.actions.all ." + class + "')" }
	p.sees(all("deny") + ".getAttribute('aria-disabled') === 'false'")
	p.Equal("true", value[string](p, all("allow")+".getAttribute('aria-disabled')"), "not all were in view")
	p.does(script(all("allow")+".click()"), script(all("allow")+".click()"))
	for i := range 3 {
		p.readsBy("document.scrollingElement", fmt.Sprintf("document.querySelectorAll('nod-session .card .hint')[%d]", i))
	}
	p.sees(all("allow") + ".getAttribute('aria-disabled') === 'false'")
	p.Equal("true", value[string](p, "("+all("allow")+".click(), "+all("allow")+".getAttribute('aria-disabled'))"), "the second click of a double click")
	p.Equal("Sure? Allow all once (3)", value[string](p, all("allow")+".innerText"))
	p.sees(all("allow") + ".getAttribute('aria-disabled') === 'false'")
	p.does(script(all("allow") + ".click()"))
	p.sees("[...document.querySelectorAll('nod-session .card .outcome')].filter((e) => e.innerText.includes('Allowed once · Ann')).length === 3")
	p.True(value[bool](p, "document.querySelector('.actions.all').hidden"))
	r.listed(r.opens("bob"), "other")
}

func TestTheHistoryIsSearched(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestTheHistoryPageSaysWhoWhenAndWhere shows the same rows")
	r := start(t)
	for id, command := range map[string]string{"one": "make release", "two": "rm -rf build", "three": "npm publish"} {
		request := shell("S", id, command)
		request.AgentName = "Agent-" + id
		r.submits(request)
	}
	r.terminal("bob", "S", "one", "allow_once")
	r.terminal("bob", "S", "two", "reject_once")
	r.terminal("bob", "S", "three", "reject_once")
	p := r.visits("ann", 1024, 768)
	p.goes("#/history")
	decided := "[...document.querySelectorAll('.decided')].map((e) => e.dataset.id).sort().join()"
	p.sees(decided + " === 'one,three,two'")
	p.sets("nod-history select", string(schemas.Denied))
	p.sees(decided + " === 'three,two'")
	p.sets("nod-history [type=search]", "bob agent-TWO")
	p.sees(decided + " === 'two'")
	p.sets("nod-history [type=search]", "carol")
	p.sees("document.querySelector('nod-history .total').innerText === 'No decision matches.'")
}

// If the user has turned notifications on, a tab without the focus shows a notification of each new
// request. The notification contains no text of the call.
func TestAnOpenTabTellsOfNewRequests(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestADecisionMadeElsewhereReplacesTheButtons changes an open page")
	r := start(t)
	r.asks("S", "old", `{}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("old"))
	p.does(script(`globalThis.told = [];
		globalThis.Notification = class { static permission = "granted"; static requestPermission = async () => "granted";
			constructor(title, options) { told.push(options.body); } };
		Object.defineProperty(document, "hasFocus", {value: () => globalThis.looks ?? false});`))
	r.asks("S", "two", `{"to":"a secret place"}`) // notices are off
	p.sees(row("two"))
	p.does(chromedp.Click(".user"), script("document.querySelector('.toggle input').click()"))
	r.asks("S", "three", `{"to":"a secret place"}`)
	p.sees("told.length === 1 && told[0].includes(' risk)')")
	p.NotContains(value[string](p, "told[0]"), "secret")
	p.does(script("globalThis.looks = true"))
	r.asks("S", "four", `{}`)
	p.sees(row("four"))
	p.Equal(int64(1), value[int64](p, "told.length"), "its user looks at the page")
}
