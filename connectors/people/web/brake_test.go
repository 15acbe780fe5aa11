package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
)

// The brake takes two clicks, denies what is open, shows on every page, and is
// taken off there too where nobody has a second device.
func TestTheBrakeOnThePage(t *testing.T) {
	r := start(t)
	asked := r.asks("S", "one", `{"to":"production"}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("one"))
	p.brakeSays("Freeze")
	p.brakes("Sure? Deny everything")
	p.does(script("document.querySelector('nod-brake button').click()")) // too soon to be meant
	p.brakeSays("Sure? Deny everything")
	p.brakes("Thaw")
	p.Contains(p.text("nod-brake"), "any agent is frozen by Ann")
	p.sees("document.querySelector('nod-brake').textContent.includes('Open requests denied: 1')")
	d, err := asked.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.Denied, d.Outcome)

	other := r.visits("bob", 360, 640)
	other.sees("document.querySelector('nod-brake').textContent.includes('frozen by Ann')")
	p.brakes("Freeze")
	p.Empty(p.text("nod-brake .frozen"))
}

func (p *page) brakeSays(label string) {
	p.t.Helper()
	p.sees(fmt.Sprintf("document.querySelector('nod-brake button').textContent === %q", label))
}

// brakes clicks the brake until it says what follows: it does nothing for a
// moment.
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
