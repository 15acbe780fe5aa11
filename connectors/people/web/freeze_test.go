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

// A freeze takes two clicks, denies the pending requests and shows on every
// page. Without a second device it can be thawed on any page.
func TestTheBrakeOnThePage(t *testing.T) {
	r := start(t)
	asked := r.asks("S", "one", `{"to":"production"}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("one"))
	p.brakeSays("Freeze")
	p.brakes("Sure? Deny everything")
	p.does(script("document.querySelector('nod-brake button').click()")) // too soon after the first click
	p.brakeSays("Sure? Deny everything")
	p.brakes("Thaw")
	p.Contains(p.text("nod-brake"), "every agent is frozen by Ann")
	p.sees("document.querySelector('nod-brake').textContent.includes('Open requests denied: 1')")
	d, err := asked.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)

	other := r.visits("bob", 360, 640)
	other.sees("document.querySelector('nod-brake').textContent.includes('frozen by Ann')")
	p.brakes("Freeze")
	p.Empty(p.text("nod-brake .frozen"))
}

// A session's page can freeze that session or its agent alone.
func TestTheBrakeOfOneSession(t *testing.T) {
	r := start(t)
	mine, other := r.asks("S", "one", `{}`), r.asks("T", "two", `{}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("one"))
	p.True(value[bool](p, "document.querySelector('nod-brake select').hidden"), "the inbox is of all")
	p.goes("#/session/S")
	p.sees("[...document.querySelector('nod-brake select').options].map((o) => o.text).join() === 'Everything,Session S,Agent local'")
	p.chooses("session")
	p.brakes("Sure? Deny this session")
	p.brakes("Thaw")
	p.Contains(p.text("nod-brake .frozen"), "session S is frozen by Ann")
	d, err := mine.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)
	r.listed(r.opens("bob"), "two")

	p.chooses("agent")
	p.brakeSays("Freeze") // the agent is not frozen
	p.brakes("Sure? Deny this agent")
	p.brakes("Thaw")
	d, err = other.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)
	p.chooses("session")
	p.brakes("Freeze")
	p.sees("document.querySelector('nod-brake .frozen').innerText.startsWith('agent local is frozen')")
	p.goes("#/")
	p.brakeSays("Thaw") // for everything
	p.brakes("Freeze")
	p.Empty(p.text("nod-brake .frozen"))
}

// If the settings name a code word, a thaw on the page takes it.
func TestAThawOnThePageTakesTheCodeWord(t *testing.T) {
	r := start(t)
	file := filepath.Join(r.dir, "word")
	r.NoError(os.WriteFile(file, []byte("open sesame"), 0o600))
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, under(`"confirm": [{"risk": "high", "code_word_file": "`+file+`"}]`))
	r.NoError(err)
	p := r.visits("ann", 1024, 768)
	p.brakeSays("Freeze")
	p.brakes("Sure? Deny everything")
	p.brakes("Thaw")
	const input = "document.querySelector('nod-brake input')"
	p.True(value[bool](p, input+".hidden"))
	for value[bool](p, input+".hidden") { // a click that comes too soon does nothing
		p.does(script("document.querySelector('nod-brake button').click()"))
	}
	p.Contains(p.text("nod-brake .said"), "takes the code word")
	p.brakeSays("Thaw")
	for until := time.Now().Add(30 * time.Second); p.text("nod-brake .frozen") != ""; {
		p.True(time.Now().Before(until), p.text("nod-brake .said"))
		p.sets("nod-brake input", "open sesame")
		p.does(script("document.querySelector('nod-brake button').click()"))
	}
	p.True(value[bool](p, input+".hidden"))
}

func (p *page) chooses(what string) {
	p.t.Helper()
	p.does(script(`{ const s = document.querySelector("nod-brake select"); s.value = "` + what + `"; s.dispatchEvent(new Event("change")); }`))
}

func (p *page) brakeSays(label string) {
	p.t.Helper()
	p.sees(fmt.Sprintf("document.querySelector('nod-brake button').textContent === %q", label))
}

// brakes clicks the button until it has this label; clicks do nothing for a
// moment after a change.
func (p *page) brakes(label string) {
	p.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; {
		said := value[string](p, "document.querySelector('nod-brake button').textContent")
		if said == label {
			return
		}
		p.True(time.Now().Before(until), "the brake never said %q but %q", label, said)
		p.does(script("document.querySelector('nod-brake button').click()"))
	}
}
