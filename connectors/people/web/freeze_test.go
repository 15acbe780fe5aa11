package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

// A freeze takes two clicks. The freeze denies the pending requests, and every page shows the freeze. If
// no second device is set up, the page can also thaw.
func TestFreezeOnThePage(t *testing.T) {
	t.Parallel()
	r := start(t)
	request := r.asks("S", "one", `{"to":"production"}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("one"))
	p.freezeSays("Freeze")
	p.clicksUntil("Sure? Deny everything")
	p.does(script("document.querySelector('nod-freeze button').click()")) // too soon after the first click, so it has no effect
	p.freezeSays("Sure? Deny everything")
	p.clicksUntil("Thaw")
	p.Contains(p.text("nod-freeze"), "every agent is frozen by Ann")
	p.sees("document.querySelector('nod-freeze').textContent.includes('Open requests denied: 1')")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)

	other := r.visits("bob", 360, 640)
	other.sees("document.querySelector('nod-freeze').textContent.includes('frozen by Ann')")
	p.clicksUntil("Freeze")
	p.Empty(p.text("nod-freeze .frozen"))
}

// The page of a session can freeze only that session or its agent.
func TestASessionsPageFreezesItsSessionOrAgent(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestFreezeOnThePage freezes all")
	r := start(t)
	mine, other := r.asks("S", "one", `{}`), r.asks("T", "two", `{}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("one"))
	p.True(value[bool](p, "document.querySelector('nod-freeze select').hidden"), "the inbox is of all")
	p.goes("#/session/S")
	p.sees("[...document.querySelector('nod-freeze select').options].map((o) => o.text).join() === 'Everything,Session S,Agent local'")
	p.chooses("session")
	p.clicksUntil("Sure? Deny this session")
	p.clicksUntil("Thaw")
	p.Contains(p.text("nod-freeze .frozen"), "session S is frozen by Ann")
	d, err := mine.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)
	r.listed(r.opens("bob"), "two")

	p.chooses("agent")
	p.freezeSays("Freeze") // freezing the session does not freeze the agent
	p.clicksUntil("Sure? Deny this agent")
	p.clicksUntil("Thaw")
	d, err = other.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)
	p.chooses("session")
	p.clicksUntil("Freeze")
	p.sees("document.querySelector('nod-freeze .frozen').innerText.startsWith('agent local is frozen')")
	p.goes("#/")
	p.freezeSays("Thaw") // on the inbox page the button thaws all freezes
	p.clicksUntil("Freeze")
	p.Empty(p.text("nod-freeze .frozen"))
}

// If the settings contain a code word, the page needs the code word for a thaw.
func TestAThawOnThePageNeedsTheCodeWord(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestFreezeOnThePage freezes, and TestAThawSaysThatItNeedsTheCodeWord thaws without a browser")
	r := start(t)
	file := filepath.Join(r.dir, "word")
	r.NoError(os.WriteFile(file, []byte("open sesame"), 0o600))
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, under(`"confirm": [{"risk": "high", "code_word_file": "`+file+`"}]`))
	r.NoError(err)
	p := r.visits("ann", 1024, 768)
	p.freezeSays("Freeze")
	p.clicksUntil("Sure? Deny everything")
	p.clicksUntil("Thaw")
	const input = "document.querySelector('nod-freeze input')"
	p.True(value[bool](p, input+".hidden"))
	for value[bool](p, input+".hidden") { // this click may come too soon to have an effect
		p.does(script("document.querySelector('nod-freeze button').click()"))
	}
	p.Contains(p.text("nod-freeze .notice"), "takes the code word")
	p.freezeSays("Thaw")
	for until := time.Now().Add(30 * time.Second); p.text("nod-freeze .frozen") != ""; {
		p.True(time.Now().Before(until), p.text("nod-freeze .notice"))
		p.sets("nod-freeze input", "open sesame")
		p.does(script("document.querySelector('nod-freeze button').click()"))
	}
	p.True(value[bool](p, input+".hidden"))
}

// The page shows the field for the code word if the details of an error from nod ask for the code word.
// The text of the error does not matter.
func TestTheCodeWordOfAThawIsNotFoundInAText(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAThawSaysThatItNeedsTheCodeWord thaws without a browser")
	r, nod := startStandIn(t)
	p := r.visits("ann", 1024, 768)
	p.freezeSays("Freeze")
	p.clicksUntil("Sure? Deny everything")
	p.clicksUntil("Thaw")
	for _, c := range []struct {
		err   *schemas.Error
		shown bool
	}{
		{schemas.Errorf(schemas.CodeForbidden, "no thaw takes the code word here"), false},
		{schemas.Errorf(schemas.CodeForbidden, "something is missing").WithCodeWord(), true},
	} {
		nod.mu.Lock()
		nod.noThaw = c.err
		nod.mu.Unlock()
		for until := time.Now().Add(30 * time.Second); p.text("nod-freeze .notice") != c.err.Message; {
			p.True(time.Now().Before(until), p.text("nod-freeze .notice"))
			p.does(script("document.querySelector('nod-freeze button').click()"))
		}
		p.Equal(c.shown, !value[bool](p, "document.querySelector('nod-freeze input').hidden"))
	}
}

func (p *page) chooses(what string) {
	p.t.Helper()
	p.does(script(`{ const s = document.querySelector("nod-freeze select"); s.value = "` + what + `"; s.dispatchEvent(new Event("change")); }`))
}

func (p *page) freezeSays(label string) {
	p.t.Helper()
	p.sees(fmt.Sprintf("document.querySelector('nod-freeze button').textContent === %q", label))
}

// clicksUntil clicks the button until it has this label, because clicks have no effect for a moment after
// a change.
func (p *page) clicksUntil(label string) {
	p.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; {
		said := value[string](p, "document.querySelector('nod-freeze button').textContent")
		if said == label {
			return
		}
		p.True(time.Now().Before(until), "the button never said %q but %q", label, said)
		p.does(script("document.querySelector('nod-freeze button').click()"))
	}
}
