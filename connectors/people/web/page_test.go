package web_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/nodbus/nod/schemas"
)

func TestAllowOnThePage(t *testing.T) {
	t.Parallel()
	r := start(t)
	request := r.asks("S", "one", `{"to":"production"}`)
	p := r.visits("ann", 1024, 768)
	p.sees("document.title === '(1) nod'")
	p.NotContains(value[string](p, "location.href"), "login", "the link's pass is gone from the address")
	p.Empty(value[string](p, "document.cookie"), "no script reads the session")
	p.opens("one")
	p.Contains(p.text(".text"), "production")
	p.Contains(p.text(".text"), "denied automatically")
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	p.ends("Allowed once · Ann")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Allowed, d.Outcome)
	r.Equal(schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "web"}, d.By)
	p.sees("document.title === 'nod'")
	p.Contains(p.text(".total"), "Nothing waits")

	p.does(script("document.querySelector('.close').click()"), chromedp.Click(".user"), chromedp.Click(".logout"))
	p.sees("document.querySelector('.state').innerText.includes('nod login')")
}

func TestDenyWithAMessageByKeyboardAlone(t *testing.T) {
	t.Parallel()
	r := start(t)
	p := r.visits("ann", 1024, 768)
	request := r.asks("S", "one", `{}`)
	r.asks("S", "two", `{"to":"production"}`)
	p.sees(row("two"))
	p.does(script(row("one")+".querySelector('button').focus()"), chromedp.KeyEvent(kb.ArrowDown))
	p.sees("document.activeElement.closest('li')?.dataset.id === 'two'")
	p.does(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.Enter))
	p.sees("document.querySelector('dialog').open")
	p.sees("document.activeElement === " + button("deny"))
	p.does(chromedp.KeyEvent(kb.Escape)) // closing the dialog must decide nothing
	p.sees("!document.querySelector('dialog').open")
	p.sees("document.activeElement.closest('li')?.dataset.id === 'one'")
	p.does(chromedp.KeyEvent(kb.Enter))
	p.sees("document.querySelector('dialog').open")
	back := chromedp.KeyEvent("\t", chromedp.KeyModifiers(chromedp.ModifierShift))
	p.does(back)
	p.sees("document.activeElement.tagName === 'SUMMARY'")
	p.does(back)
	p.sees("document.activeElement.tagName === 'TEXTAREA'")
	p.does(chromedp.KeyEvent("use make clean"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"))
	p.ready("deny")
	p.does(chromedp.KeyEvent(kb.Enter))
	p.ends("Denied · Ann")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)
	r.Equal("use make clean", d.Message)
}

func TestADecisionMadeElsewhereReplacesTheButtons(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.asks("S", "one", `{"to":"production"}`)
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.ready("allow")
	r.terminal("bob", "S", "one", "reject_once")
	p.ends("Denied · Bob")
	p.Contains(p.text(".text"), "production", "the request stays")
	p.sees("!" + row("one"))
	p.sees("document.activeElement.className === 'close'")
}

// For a moment after a change on the page, clicks have no effect. Allow is also inactive until the end
// of the request has been visible.
func TestButtonsAreInertAfterAChange(t *testing.T) {
	t.Parallel()
	r := start(t)
	long, err := json.Marshal(map[string]string{"text": strings.Repeat("line\n", 300)})
	r.NoError(err)
	r.asks("S", "one", string(long))
	r.asks("S", "two", `{}`)
	p := r.visits("ann", 1024, 768)

	// This script opens the request and clicks both buttons before the browser handles any other
	// event.
	p.sees(row("two"))
	p.does(script(row("two") + `.querySelector('button').click();
		` + button("deny") + `.click(); ` + button("allow") + `.click()`))
	p.Equal("deny", value[string](p, "document.activeElement.className"), "the focus starts on Deny")
	p.ready("deny")
	p.ready("allow")
	p.does(chromedp.KeyEvent(kb.Escape))

	p.opens("one")
	p.ready("deny")
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"), "its end was not in view")
	p.does(chromedp.Click(".actions .allow"))
	p.Contains(p.text("dialog .hint"), "Read to the end")
	p.reads()
	p.ready("allow")
	s := r.opens("bob")
	r.listed(s, "one", "two") // both requests are still pending
}

func TestThePageComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.asks("S", "one", `{}`)
	r.asks("S", "two", `{}`)
	r.asks("S", "three", `{}`)
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.ready("allow")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.web.URL(), "http://"))
	r.NoError(err)
	r.down()
	p.sees("document.querySelector('.state').innerText.includes('Disconnected')")
	p.sees(button("allow") + ".getAttribute('aria-disabled') === 'true'")
	p.sees(button("deny") + ".getAttribute('aria-disabled') === 'true'")
	p.True(value[bool](p, "document.querySelector('main').inert"))

	r.up("") // no inbox runs now, so the page misses the next changes
	r.terminal("bob", "S", "two", "reject_once")
	r.asks("S", "four", `{}`)
	r.down()
	r.up("127.0.0.1:" + port)
	p.sees("document.querySelector('.state').hidden")
	p.sees(row("four"))
	p.sees("!" + row("two"))
	p.Equal(int64(3), value[int64](p, "document.querySelectorAll('.rows li[data-id]').length"), "each once")
	p.ready("allow") // the open request is still pending
	r.terminal("bob", "S", "one", "allow_once")
	p.ends("Allowed once · Bob")
}

// After an outage, a session's page shows the current state.
func TestASessionsPageComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestThePageComesBackAfterARestart is the same for the list")
	r := start(t)
	r.asks("S", "one", `{}`)
	r.asks("S", "two", `{"to":"production"}`)
	p := r.visits("ann", 1024, 2000)
	p.goes("#/session/S")
	p.sees(card("two") + "?.querySelector('.actions .allow')?.getAttribute('aria-disabled') === 'false'")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.web.URL(), "http://"))
	r.NoError(err)
	r.down()
	p.sees("document.querySelector('main').inert")
	p.sees("[...document.querySelectorAll('.actions button')].every((b) => b.getAttribute('aria-disabled') === 'true')")
	r.up("")
	r.terminal("bob", "S", "one", "reject_once")
	r.down()
	r.up("127.0.0.1:" + port)
	p.sees(card("one") + "?.innerText.match(/Denied · Bob · .* · terminal/)")
	p.sees("!" + card("one") + ".querySelector('.actions')")
	p.inline("two", "allow")
	p.sees(card("two") + ".querySelector('.outcome')?.innerText.includes('Allowed once · Ann')")
}

func TestARequestDecidedDuringADisconnectIsNotOffered(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestThePageComesBackAfterARestart connects again")
	r := start(t)
	r.asks("S", "one", `{}`)
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.ready("allow")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.web.URL(), "http://"))
	r.NoError(err)
	r.down()
	r.up("")
	r.terminal("bob", "S", "one", "allow_once")
	r.down()
	r.up("127.0.0.1:" + port)
	p.ends("ended while the page was disconnected")
}

func TestHostilePayloadsStayText(t *testing.T) {
	t.Parallel()
	r := start(t)
	attack := `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>` + "\u202Egnp.exe\u202C\u2066" + `</dialog><h1>fake</h1>`
	input, err := json.Marshal(map[string]string{"command": attack, "big": strings.Repeat("A", 100_000) + "END", attack: "x"})
	r.NoError(err)
	req := deploy("S", "one", string(input))
	req.Title, req.Reason, req.AgentName, req.Host, req.Project = attack, attack, attack, attack, attack
	req.Options = []schemas.Option{{OptionID: "y", Name: attack, Kind: schemas.AllowOnce}, {OptionID: "n", Name: attack, Kind: schemas.RejectOnce}, {OptionID: "n2", Name: "other", Kind: schemas.RejectOnce}}
	_, err = r.asker.Submit(r.ctx, req)
	r.NoError(err)
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.ready("deny")
	text := p.text("dialog")
	p.Contains(text, "<script>")
	p.Contains(text, "END")
	p.Contains(text, "⟦U+202E")
	p.NotContains(value[string](p, "document.body.innerText"), "\u202E")
	p.Zero(value[int64](p, "document.querySelectorAll('body img, body script, dialog h1, body iframe').length"))
	p.Equal("(1) nod", value[string](p, "document.title"))
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"), "its end was not in view")
	p.True(value[bool](p, "document.querySelector('.text').scrollWidth <= document.querySelector('.text').clientWidth"), "nothing is beside the page")
	p.does(script("document.querySelector('.close').click()"))

	// The page of a session scrolls as a whole. There, Allow is inactive until the request has been
	// visible.
	p.goes("#/session/S")
	allow := card("one") + "?.querySelector('.actions .allow')"
	p.sees(card("one") + "?.querySelector('.actions .deny')?.getAttribute('aria-disabled') === 'false'")
	p.Contains(p.text("nod-session"), "<script>")
	p.Contains(p.text("nod-session"), "⟦U+202E")
	p.Equal("true", value[string](p, allow+".getAttribute('aria-disabled')"), "its end was not in view")
	p.does(script(allow + ".click()"))
	p.Contains(p.text("nod-session li .hint"), "Read to the end")
	p.True(value[bool](p, "document.documentElement.scrollWidth <= innerWidth"), "nothing is beside the page")
	p.readsBy("document.scrollingElement", card("one")+".querySelector('.hint')")
	p.sees(allow + ".getAttribute('aria-disabled') === 'false'")
	p.does(script(card("one") + ".querySelector('.actions .deny').click()"))
	p.sees(card("one") + ".querySelector('.outcome')")
	p.goes("#/history")
	p.sees("document.querySelector('.decided')")
	p.does(script("document.querySelector('.decided summary').click()"))
	p.Contains(p.text("nod-history"), "END")
	p.Zero(value[int64](p, "document.querySelectorAll('body img, body script, main h1, body iframe').length"))
	p.NotContains(value[string](p, "document.body.innerText"), "\u202E")
	p.Equal("nod", value[string](p, "document.title"))
}

func TestThePageFitsAPhone(t *testing.T) {
	t.Parallel()
	r := start(t)
	input, err := json.Marshal(map[string]string{"command": "rm -rf " + strings.Repeat("very-long-directory-name/", 20), "cwd": "/workspace"})
	r.NoError(err)
	r.asks("S", "one", string(input))
	r.asks(strings.Repeat("long-session-", 9), "two", `{}`)
	p := r.visits("ann", 360, 740)
	p.sees(row("two"))
	fits := "document.documentElement.scrollWidth <= 360"
	p.True(value[bool](p, fits))
	p.keeps("phone-inbox.png")
	p.opens("one")
	p.ready("deny")
	p.True(value[bool](p, fits))
	for _, class := range []string{"deny", "allow"} {
		p.True(value[bool](p, `(() => { const b = `+button(class)+`.getBoundingClientRect();
			return b.left >= 0 && b.right <= 360 && b.top >= 0 && b.bottom <= 740 && b.height >= 44 })()`), class)
	}
	p.keeps("phone-dialog.png")
}

// keeps takes a screenshot and, if NOD_TEST_PICTURES names a directory, saves it there.
func (p *page) keeps(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.tab, chromedp.CaptureScreenshot())
	p.NoError(err)
	p.NotEmpty(png)
	if dir := os.Getenv("NOD_TEST_PICTURES"); dir != "" {
		p.NoError(os.WriteFile(filepath.Join(dir, name), png, 0o644))
	}
}

// A user can answer an agent's question with a text. Without a text, the button that sends the text is
// inactive. With a text, all other answers except the denial are inactive.
func TestAQuestionIsAnsweredInOnesOwnWords(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAQuestionIsAnsweredByADigit answers one")
	r := start(t)
	request := r.submits(question("one", "Which database?",
		schemas.Option{OptionID: "answer_1", Name: "Postgres", Kind: schemas.AllowOnce},
		schemas.Option{OptionID: "own_words", Name: "Something else", Kind: schemas.AllowOnce, Text: true},
		schemas.Option{OptionID: "no_answer", Name: "Leave it", Kind: schemas.RejectOnce},
	))
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.Contains(p.text("dialog .message"), "in your own words")
	states := func(deny, postgres, own bool) {
		t.Helper()
		p.sees(fmt.Sprintf("[...document.querySelectorAll('.actions button')].map((b) => b.getAttribute('aria-disabled') === 'false').join() === '%t,%t,%t'", deny, postgres, own))
	}
	states(true, true, false)
	p.sets("dialog .message textarea", "  ")
	states(true, true, false)
	p.does(chromedp.SendKeys("dialog .message textarea", "MariaDB, please"))
	states(true, false, true)
	p.does(chromedp.Click(".actions button:nth-of-type(3)"))
	p.ends("MariaDB, please")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Allowed, d.Outcome)
	r.Equal("own_words", d.OptionID)
	r.Equal("MariaDB, please", d.Message)

	// Without a text, a user can choose any other option.
	two := r.submits(question("two", "Which cache?",
		schemas.Option{OptionID: "answer_1", Name: "Redis", Kind: schemas.AllowOnce},
		schemas.Option{OptionID: "own_words", Name: "Something else", Kind: schemas.AllowOnce, Text: true},
	))
	p.does(script("document.querySelector('.close').click()"))
	p.opens("two")
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	d, err = two.Await(r.ctx)
	r.NoError(err)
	r.Equal("answer_1", d.OptionID)
}
