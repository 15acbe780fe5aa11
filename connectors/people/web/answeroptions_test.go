package web_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

// unfolds opens the details element whose summary begins with the text line.
func (p *page) unfolds(line string) {
	p.t.Helper()
	p.does(script("[...document.querySelectorAll('dialog summary')].find((s) => s.innerText.startsWith('" + line + "')).click()"))
}

// sets enters a value into a field and triggers the same input event as a user.
func (p *page) sets(selector, value string) {
	p.t.Helper()
	p.does(script(fmt.Sprintf(`{ const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); }`, selector, value)))
}

// A rule for one session only can be chosen neither for the agent nor until it is revoked, also if these were chosen
// for another rule before.
func TestARuleForOneSessionIsOfferedNoWider(t *testing.T) {
	t.Parallel()
	r := start(t)
	design := shell("S", "one", "")
	design.ToolName, design.ActionType, design.ActionDetails = "Write", schemas.ActionFileWrite, []byte(`{"file_path":"/app/a.md","content":"x","cwd":"/app"}`)
	request := r.submits(design)
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.reads()
	p.ready("allow")
	p.unfolds("Allow from now on")
	p.sets("dialog .choices label:nth-of-type(1) select", "agent")
	p.sets("dialog .choices label:nth-of-type(2) select", "0")
	p.sees("document.querySelector('dialog .reach').innerText.endsWith('Write(/app/a.md) in /app, in every session of this agent, until it is revoked.')")
	p.does(chromedp.Click("dialog .rule:nth-of-type(3)"))
	p.sees("document.querySelector('dialog .reach').innerText.endsWith('Edit(/app/) in /app and Write(/app/) in /app, in this session, for 8 hours.')")
	p.Equal("Edit(/app/) in /app and Write(/app/) in /app (in this session only)", p.text("dialog .rule:nth-of-type(3)"))
	p.sets("dialog .choices label:nth-of-type(1) select", "agent")
	p.sets("dialog .choices label:nth-of-type(2) select", "0")
	p.sees("document.querySelector('dialog .reach').innerText.endsWith('in this session, for 8 hours.')")
	p.scrolls()
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal(schemas.ScopeSession, d.Grant.Scope)
	r.Equal(schemas.MaxSessionOnly, d.Grant.ExpiresAt.Sub(d.DecidedAt))
	r.NotNil(d.Grant.SessionOnly)
}

// A lasting allow needs a second step, which shows the rule and the time at which the rule ends.
func TestAllowFromNowOnShowsTheExactRule(t *testing.T) {
	t.Parallel()
	r := start(t)
	request := r.submits(shell("S", "one", "go test ./bus"))
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.reads()
	p.ready("allow")
	p.Empty(p.text("dialog .reach"))
	p.does(script("new MutationObserver(() => { globalThis.inert ||= " + button("allow") + ".getAttribute('aria-disabled') === 'true' })" +
		".observe(document.querySelector('dialog'), {subtree: true, childList: true, attributes: true})"))
	p.unfolds("Allow from now on")
	p.sees("document.querySelector('dialog .reach').innerText === 'Besides this call, nod will allow: Bash(go test ./bus) in /app, in this session, for 30 minutes.'")
	p.True(value[bool](p, "globalThis.inert === true"), "the button means something else now, so it is inert for a moment")
	p.does(chromedp.Click("dialog .rule:nth-of-type(2)"))
	p.sets("dialog .choices label:nth-of-type(2) select", "0")
	p.sees("document.querySelector('dialog .reach').innerText === 'Besides this call, nod will allow: Bash(go test:*) in /app, in this session, until it is revoked.'")
	p.Equal("Allow, and from now on", p.text(".actions .allow"))
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	p.ends("from now on Bash(go test:*) in /app, in this session")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.Equal("Bash(go test:*) in /app", d.Grant.Reach())
	r.True(d.Grant.ExpiresAt.IsZero())

	// The page lists the standing answer, and a click ends it.
	p.does(script("document.querySelector('.close').click()"))
	p.goes("#/grants")
	p.sees("document.querySelector('.grant')?.innerText.includes('Bash(go test:*) in /app')")
	p.Contains(p.text(".grant"), "by Ann")
	p.does(chromedp.Click(".grant button"))
	p.sees("document.querySelector('nod-grants .total').innerText.startsWith('Revoked')")
	p.sees("!document.querySelector('.grant button')")
	r.submits(shell("S", "two", "go test ./bus")) // the standing answer has ended, so nod asks a person again
	p.goes("#/")
	p.sees(row("two"))
}

func TestTheInputIsEditedBeforeItIsAllowed(t *testing.T) {
	t.Parallel()
	r := start(t)
	request := r.submits(shell("S", "one", "rm -rf build \u202e"))
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.reads()
	p.ready("allow")
	p.unfolds("Edit the input")
	p.sees("document.querySelector('dialog .edit').checkVisibility()")
	p.Equal("\"rm -rf build \\u202e\"", value[string](p, "document.querySelector('dialog .edit').value"), "nothing hides in what is edited")
	p.Equal("/app", value[string](p, "document.querySelector('dialog .edit[data-field=cwd]').value"), "a plain text is edited as it is")
	p.ready("allow")
	p.Equal("Allow once", p.text(".actions .allow"), "as it was asked")
	p.sets("dialog .edit", `"make clean`)
	p.sees("document.querySelector('dialog .hint').innerText === 'The field command is not JSON.'")
	p.ready("deny")
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"))
	p.sets("dialog .edit", `"make clean"`)
	p.ready("allow")
	p.sees("document.querySelector('.difference')?.innerText.includes('+ make clean')")
	p.Contains(p.text(".difference"), "- rm -rf build ⟦U+202E")
	p.NotContains(p.text(".difference"), "cwd", "only what changed")
	p.Equal("Allow as edited", p.text(".actions .allow"))
	p.does(chromedp.Click(".actions .allow"))
	p.ends("Allowed once, with changes · Ann")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.JSONEq(`{"command":"make clean","cwd":"/app"}`, string(d.UpdatedInput))
}

// If the box for identical requests is checked, one answer decides all requests with the same text.
// Other requests stay pending, and so do identical requests that arrive after the dialog was opened.
func TestOneAnswerDecidesIdenticalRequests(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.submits(shell("S", "one", "npm test"))
	two := r.submits(shell("T", "two", "npm test"))
	three := r.submits(shell("U", "three", "npm test"))
	r.submits(shell("V", "gone", "npm test"))
	r.submits(shell("S", "other", "npm tes"))
	p := r.visits("ann", 1024, 768)
	p.sees(row("other"))
	p.opens("one")
	p.Equal("two in T\nthree in U\ngone in V", p.text("dialog .others"))
	r.terminal("bob", "V", "gone", "reject_once")
	p.sees("document.querySelector('dialog .others').innerText === 'two in T\\nthree in U'")
	r.submits(shell("W", "late", "npm test"))
	p.sees(row("late"))
	p.does(chromedp.Click("dialog .alike"))
	p.sees(button("deny") + ".innerText === 'Deny (all 3)'")
	p.ready("deny")
	p.does(chromedp.Click(".actions .deny"))
	p.ends("Denied · Ann")
	for _, request := range []*bus.OpenRequest{two, three} {
		d, err := request.Await(r.ctx)
		r.NoError(err)
		r.Equal(schemas.Denied, d.Outcome)
	}
	s := r.opens("bob")
	r.listed(s, "other", "late")
}

func TestTheCodeWordIsAskedForAndNeededToAllow(t *testing.T) {
	t.Parallel()
	r := start(t)
	file := t.TempDir() + "/word"
	r.NoError(os.WriteFile(file, []byte("open sesame"), 0o600))
	owner := connector.NewOwner(r.connect(roles.ID{Role: roles.Owner}), web.Name)
	_, err := owner.ApplySettings(r.ctx, under(`"confirm": [{"risk": "low", "code_word_file": "`+file+`"}]`))
	r.NoError(err)
	r.asks("S", "one", `{}`)
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.ready("deny")
	p.Contains(p.text("dialog .takes"), "the code word")
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"))
	p.sets("dialog .answer-options input[type=password]", "sesame")
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	p.sees("document.querySelector('dialog .status').innerText.includes('this one is wrong or missing')")
	p.sets("dialog .answer-options input[type=password]", "open sesame")
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	p.ends("Allowed once · Ann")
}

// The dialog has a field for the code word only if the request requires the code word. A text that
// resembles this condition does not add the field.
func TestTheCodeWordOfARequestIsNotFoundInAText(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestTheCodeWordIsAskedForAndNeededToAllow needs the word")
	r, nod := startStandIn(t)
	p := r.visits("ann", 1024, 768)
	for n, c := range []struct {
		condition string
		shown     bool
	}{
		{"a second device (no code word)", false},
		{"at least a screen, " + schemas.ConditionCodeWord, true},
	} {
		prompt := peopletest.UnseenPrompt(n)
		prompt.Conditions = []string{c.condition}
		nod.shows(prompt)
		p.opens(prompt.PendingID)
		p.ready("deny")
		p.Contains(p.text("dialog .takes"), c.condition)
		p.Equal(c.shown, value[bool](p, "document.querySelector('dialog .answer-options input[type=password]') !== null"))
		p.does(script("document.querySelector('dialog .close').click()"))
		nod.withdraws(prompt.Key())
	}
}

// If a request expires while its dialog is open, the outcome replaces the buttons.
func TestAnExpiryReplacesTheButtonsOfAnOpenDialog(t *testing.T) {
	onlyLong(t, "TestADecisionMadeElsewhereReplacesTheButtons ends the same dialog")
	t.Parallel() // the test mostly waits for a deadline, so it runs beside other tests
	r := start(t)
	p := r.visits("ann", 1024, 768)
	request := schemas.Request{
		SessionID: "S", PendingID: "one", Kind: schemas.KindPermission, Title: "Reach the network", ActionType: schemas.ActionOther,
		ActionDetails: []byte(`{}`), Permissions: []string{"@network"}, Reason: "to fetch", Options: schemas.DefaultOptions(), TimeoutSeconds: 10,
	}
	r.submits(request)
	p.opens("one")
	p.reads()
	p.ready("allow")
	p.Equal("Allow", p.text(".actions .allow"))
	p.Contains(p.text("dialog .reach"), "lets the agent hold: @network, in this session, until it is revoked.")
	p.ends("Expired: denied automatically")
	p.sees("!" + row("one"))
}

// An answer sets how long a permission is granted.
func TestAPermissionIsGrantedForAWhile(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAllowFromNowOnShowsTheExactRule gives a lasting answer")
	r := start(t)
	request := r.submits(schemas.Request{
		SessionID: "S", PendingID: "one", Kind: schemas.KindPermission, Title: "Reach the network", ActionType: schemas.ActionOther,
		ActionDetails: []byte(`{}`), Permissions: []string{"@network"}, Reason: "to fetch", Options: schemas.DefaultOptions(),
	})
	p := r.visits("ann", 1024, 768)
	p.opens("one")
	p.reads()
	p.unfolds("Where and for how long")
	p.sets("dialog .choices label:nth-of-type(2) select", "3600")
	p.sees("document.querySelector('dialog .reach').innerText.endsWith('@network, in this session, for 1 hour.')")
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	p.ends("Allowed, and from now on @network, in this session, for 60 minutes")
	d, err := request.Await(r.ctx)
	r.NoError(err)
	r.WithinDuration(d.DecidedAt.Add(time.Hour), d.Grant.ExpiresAt, time.Minute)
}
