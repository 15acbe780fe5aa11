package web_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

// shows waits until the page shows this request.
func (p *page) shows(id string) {
	p.t.Helper()
	p.sees("document.querySelector('dialog').open && " + row(id) + "?.classList.contains('current')")
}

func (p *page) presses(key string) {
	p.t.Helper()
	p.does(chromedp.KeyEvent(key))
}

// After each answer the page shows the next request, so each request takes one key.
func TestEachRequestTakesOneKey(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestDenyWithAMessageByKeyboardAlone presses the same keys")
	r := start(t)
	const n = 30
	for i := range n {
		r.asks(fmt.Sprint("S", i%3), fmt.Sprint("r", i), fmt.Sprintf(`{"to":"host-%d"}`, i))
	}
	p := r.visits("ann", 1024, 768)
	p.sees(fmt.Sprintf("document.querySelectorAll('.rows li[data-id]').length === %d", n))
	p.presses("j")
	for i := range n {
		p.sees("document.querySelector('dialog').open")
		key, class := "d", "deny"
		if i%2 == 0 {
			key, class = "a", "allow"
		}
		p.ready(class)
		p.presses(key)
		p.sees(fmt.Sprintf("document.querySelectorAll('.rows li[data-id]').length === %d", n-1-i))
	}
	p.sees("document.title === 'nod'")
	p.Contains(p.text("dialog .outcome"), "Denied · Ann", "after the last answer its outcome stays")
}

func TestKeysDoNothingElse(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestDenyWithAMessageByKeyboardAlone presses the same keys")
	r := start(t)
	r.asks("S", "one", `{"to":"production"}`)
	r.asks("S", "two", `{}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("two"))
	p.presses("a") // the key a has no effect, because no request is open
	p.presses("j")
	p.shows("one")
	p.presses("j")
	p.shows("two")
	p.presses("j") // there is no later request, so the open request stays open
	// Right after the request has changed, no button works yet, so the key d must have no effect. A timer
	// of the page presses the key, because the test may be too slow on a busy machine.
	p.does(script(`{ const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
		press("k"); setTimeout(() => { press("d"); globalThis.pressed = true }, 100) }`))
	p.sees("globalThis.pressed")
	p.shows("one")
	p.ready("allow")
	p.presses("m")
	p.sees("document.activeElement.tagName === 'TEXTAREA'")
	p.presses("ad") // the keys are letters of the message, and no shortcuts
	p.Equal("ad", strings.TrimPrefix(value[string](p, "document.activeElement.value"), "m"), "the test's own keys type the m too, unlike a keyboard's")
	p.presses(kb.Escape) // Escape leaves the field
	p.sees("document.activeElement.tagName !== 'TEXTAREA'")
	p.presses("?")
	p.sees("document.querySelector('.help').matches(':popover-open')")
	p.presses("d") // the key d has no effect while the list of keys is open
	p.presses("?")
	p.sees("!document.querySelector('.help').matches(':popover-open')")
	p.presses("/")
	p.sees("document.activeElement.type === 'search'")
	p.presses(kb.Escape)
	p.presses(kb.Escape)
	p.sees("!document.querySelector('dialog').open")
	r.listed(r.opens("bob"), "one", "two") // none of the keys has decided anything
}

// A user can undo a denial that nod remembers. nod then asks again about the agent's next
// identical call. The decision about the first call does not change.
func TestADenialIsTakenBack(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestFreezeOnThePage presses such buttons, and test/people takes a denial back")
	r := start(t)
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, bytes.Replace([]byte(everybody), []byte(`"remember_denials_seconds": 0`), []byte(`"remember_denials_seconds": 600`), 1))
	r.NoError(err)
	first := r.submits(shell("S", "one", "rm -rf build"))
	p := r.visits("ann", 1024, 768)
	p.sees(row("one"))
	p.presses("j")
	p.ready("deny")
	p.presses("d")
	p.ends("Denied · Ann")
	d, err := first.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)
	r.Equal(schemas.Denied, r.decidedAtOnce(shell("S", "two", "rm -rf build")), "the denial is remembered")
	p.presses("u")
	p.sees("document.querySelector('nod-toasts').innerText.includes('Taken back')")
	r.submits(shell("S", "three", "rm -rf build"))
	p.sees(row("three"))
}

// decidedAtOnce submits a request that nod decides without a person, and returns its outcome.
func (r *rig) decidedAtOnce(request schemas.Request) schemas.Outcome {
	r.t.Helper()
	open, err := r.asker.Submit(r.ctx, request)
	r.NoError(err)
	d, err := open.Await(r.ctx)
	r.NoError(err)
	return d.Outcome
}

// A digit chooses an answer to an agent's question. The answer's button shows the digit.
func TestAQuestionIsAnsweredByADigit(t *testing.T) {
	t.Parallel()
	r := start(t)
	request := r.submits(question("one", "Which database?",
		schemas.Option{OptionID: "pg", Name: "Postgres", Kind: schemas.AllowOnce},
		schemas.Option{OptionID: "my", Name: "MariaDB", Kind: schemas.AllowOnce},
		schemas.Option{OptionID: "no", Name: "Leave it", Kind: schemas.RejectOnce},
	))
	p := r.visits("ann", 1024, 768)
	p.sees(row("one"))
	p.presses("j")
	p.ready("allow")
	p.Equal([]string{"", "1", "2"}, value[[]string](p, "[...document.querySelectorAll('dialog .actions button')].map((b) => b.dataset.key ?? '')"))
	p.presses("a") // the keys for an allow have no effect, because no answer to an agent's question is an allow
	p.presses("9")
	p.presses("2")
	p.ends("MariaDB")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal("my", d.OptionID)
}
