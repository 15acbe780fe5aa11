package web_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheHistoryPageSaysWhoWhenAndWhere(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.asks("S", "one", `{"to":"production"}`)
	r.asks("T", "two", `{}`)
	r.terminal("bob", "S", "one", "reject_once")
	p := r.visits("ann", 1024, 768)
	p.goes("#/history")
	p.sees("document.querySelector('.decided')?.innerText.match(/Denied · Bob · .*\\d:\\d\\d.* · terminal/)")
	p.True(value[bool](p, "Date.now() - Date.parse(document.querySelector('.decided time').dateTime) < 600_000"))
	p.does(script("document.querySelector('.decided summary').click()"))
	p.sees("document.querySelector('.decided dl').innerText.includes('production')")
	r.terminal("bob", "T", "two", "allow_once") // the open page must also show the decision from the terminal
	p.sees("document.querySelectorAll('.decided').length === 2")
	p.Contains(p.text(".decided"), "Allowed once · Bob")
	for _, hash := range []string{"#/constructor", "#/session", "#/session/", "#/nothing/else"} { // for an unknown address the page shows the inbox
		p.goes(hash)
		p.sees("document.querySelector('main nod-inbox')")
		p.goes("#/history")
		p.sees("document.querySelector('main nod-history')")
	}
	p.Equal("History", value[string](p, "document.querySelector('nav [aria-current=page]').innerText"))
}

// The page can show and answer requests even if 500 are pending.
func TestHundredsPending(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestTheInboxGroupsBySessionAndSorts lists fewer requests")
	n := 500
	r := start(t)
	r.pours(n, `{"text":"`+strings.Repeat("x", 2000)+`"}`)()
	p := r.visits("ann", 1024, 768)
	p.sees(fmt.Sprintf("document.querySelectorAll('.rows li[data-id]').length === %d", n))
	p.Equal(fmt.Sprintf("(%d) nod", n), value[string](p, "document.title"))
	p.Contains(p.text("nod-inbox .total"), fmt.Sprintf("%d requests wait.", n))
	p.Equal("icon/100", value[string](p, "document.querySelector('link[rel=icon]').getAttribute('href')"))
	p.Contains(r.does("GET", "/icon/100", "").body, ">99+<")

	p.sets("input[type=search]", "s3")
	p.sees(fmt.Sprintf("document.querySelector('nod-inbox .total').innerText.includes('%d of them shown')", n/5))
	p.sets("input[type=search]", "")
	last := fmt.Sprint("r", n-1)
	p.opens(last)
	p.reads()
	p.ready("allow")
	p.does(script(button("allow") + ".click()"))
	p.ends("Allowed once · Ann")
	p.sees(fmt.Sprintf("document.title === '(%d) nod'", n-1))

	// A page at another inbox of the same nod, opened later, shows the same requests.
	other := r.another().visits("bob", 360, 740)
	other.sees(fmt.Sprintf("document.querySelectorAll('.rows li[data-id]').length === %d", n-1))
}
