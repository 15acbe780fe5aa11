package web_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// pressables is a script that returns the labels of the dialog's buttons and fields, and stores these
// elements in globalThis.pressable. They are the answer buttons, the line that unfolds the lasting
// answers, the rules, and the last option of each list. A plain Deny is missing, because other
// tests press it.
const pressables = `(() => {
	const all = [], mark = (e, label, value) => { if (e.checkVisibility()) all.push({e, label, value}); };
	for (const b of document.querySelectorAll("dialog .actions button")) if (b.getAttribute("aria-disabled") === "false" && b.innerText !== "Deny") mark(b, b.innerText);
	for (const s of document.querySelectorAll("dialog .answer-options summary")) if (s.innerText.startsWith("Allow from")) mark(s, "- " + s.innerText);
	for (const r of document.querySelectorAll("dialog .rule input:not(:checked)")) mark(r, "- " + r.parentElement.innerText);
	for (const o of document.querySelectorAll("dialog .choices option:last-child:not(:checked)")) mark(o.parentElement, "- " + o.text, o.value);
	globalThis.pressable = all;
	return all.map((p) => p.label);
})()`

// inView is a script that returns the text of the dialog that is visible in the window.
const inView = `(() => {
	const texts = document.createTreeWalker(document.querySelector("dialog"), NodeFilter.SHOW_TEXT), seen = [];
	const range = document.createRange();
	for (let n = texts.nextNode(); n; n = texts.nextNode()) {
		range.selectNodeContents(n);
		const boxes = [...range.getClientRects()];
		const shown = (b) => {
			const at = document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2);
			return at && (n.parentElement.contains(at) || at.contains(n.parentElement));
		};
		if (boxes.length && boxes.every(shown)) seen.push(n.textContent);
	}
	return seen.join("\n");
})()`

// onPage is Ann, who has opened the dialog of a request. The field prompt contains the request. onPage
// implements peopletest.Person.
type onPage struct {
	*page
	nod    *standIn
	prompt schemas.Prompt
}

// Even in the smallest window, a user can give a lasting answer only while the page shows the rule,
// its project and its end beside the button.
func TestAStandingAnswerNeedsItsRuleShown(t *testing.T) {
	t.Parallel()
	if !*long {
		t.Skip("left out: trying each sequence of presses in a browser takes a while; -long runs it, as in .ci/run")
	}
	var screens []func(n int) peopletest.Person
	for range 4 {
		r, nod := startStandIn(t)
		screens = append(screens, r.visits("ann", 360, 640).asksUnseen(nod))
	}
	peopletest.NothingLastsUnseen(t, 3, peopletest.Lasts{Rules: true, Agents: true}, screens...)
}

// asksUnseen returns a function that removes the page's last prompt, shows the prompt n and reads it.
func (p *page) asksUnseen(nod *standIn) func(n int) peopletest.Person {
	return func(n int) peopletest.Person {
		prompt := peopletest.UnseenPrompt(n)
		p.does(script("document.querySelector('dialog .close')?.click()"))
		if n > 0 {
			nod.withdraws(schemas.Key(prompt.SessionID, peopletest.UnseenPrompt(n-1).PendingID))
		}
		nod.shows(prompt)
		p.readsAll(prompt.PendingID)
		w := &onPage{p, nod, prompt}
		w.rests()
		return w
	}
}

// readsAll opens a request and scrolls from its beginning to its end.
func (p *page) readsAll(id string) {
	p.t.Helper()
	p.opens(id)
	p.ready("deny")
	p.reads()
	p.sees("!document.querySelector('dialog .hint').innerText.includes('Read to the end')")
}

// A jump to the end of a long request, for example with the key End, does not count as reading. The part
// in between must have been in view too.
func TestAJumpToTheEndIsNoReading(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.asks("S", "one", `{"to":"`+strings.Repeat("long ", 3000)+`"}`)
	p := r.visits("ann", 360, 640)
	p.opens("one")
	p.ready("deny")
	p.does(script("document.querySelector('.text').focus()"), chromedp.KeyEvent(kb.End))
	p.sees("document.querySelector('dialog .hint').innerText === 'Read the part that you skipped to allow.'")
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"))
	p.reads()
	p.ready("allow")
}

// A user can allow a write of an existing file only after its whole text was in view, although the diff
// above the text is short.
func TestTheWholeTextOfAWriteIsRead(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAJumpToTheEndIsNoReading is the same for a command")
	r, nod := startStandIn(t)
	prompt := peopletest.UnseenPrompt(0)
	details, err := schemas.Encode(map[string]string{"file_path": "/app/a.txt", "content": strings.Repeat("kept\n", 200) + "added\n"})
	r.NoError(err)
	prompt.Request.ToolName, prompt.Request.ActionType, prompt.Request.ActionDetails = "Write", schemas.ActionFileWrite, details
	prompt.OnDisk = &schemas.DiskFile{Lines: 200, Changes: []schemas.DiskChange{{Line: 201, Added: 1}}}
	p := r.visits("ann", 1024, 768)
	nod.shows(prompt)
	p.opens(prompt.PendingID)
	p.ready("deny")
	p.Contains(p.text(".text"), "lines 1 to 197 are the same as on disk")
	p.Contains(p.text(".text"), strings.Repeat("kept\n", 200)+"added")
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"))
	p.keeps("write-on-disk.png")
	p.reads()
	p.ready("allow")
}

// A user must read a lasting rule before allowing it, even if the rule is outside the visible area of
// the dialog.
func TestALastingRuleIsReadBeforeItIsAllowed(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAJumpToTheEndIsNoReading is the same for a command")
	r, nod := startStandIn(t)
	prompt := peopletest.UnseenPrompt(0)
	prompt.Remember = []schemas.Reach{{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"echo", strings.Repeat("long ", 400)}}}}}
	nod.shows(prompt)
	p := r.visits("ann", 360, 640)
	p.readsAll("unseen-0")
	p.unfolds("Allow from now on")
	p.does(script("document.querySelector('dialog .actions').scrollIntoView({block: 'end'})"))
	// The end of the rule is just above the buttons. After a moment the page notices that the end has
	// been in view.
	p.sees("/^Read (the lasting rule to its end|the part of the lasting rule that you skipped) to allow\\.$/.test(document.querySelector('dialog .hint').innerText)")
	p.ready("deny")
	p.does(script(button("allow") + ".click()"))
	r.Empty(nod.said())
	for _, end := range []string{"first", "last"} {
		p.does(script("document.querySelector('dialog .reach .end:" + end + "-child').scrollIntoView()"))
		p.frames()
	}
	p.sees("document.querySelector('dialog .hint').innerText === 'Read the part of the lasting rule that you skipped to allow.'")
	p.Equal("true", value[string](p, button("allow")+".getAttribute('aria-disabled')"), "the beginning and the end are not the whole rule")
	p.readsBy("document.querySelector('dialog .foot')", "document.querySelector('dialog .hint')")
	p.ready("allow")
	p.does(script(button("allow") + ".click()"))
	p.ends("Allowed once")
	r.Equal(schemas.ScopeSession, nod.said()[0].Scope)
}

// rests scrolls to the buttons and waits until they are active.
func (w *onPage) rests() {
	w.t.Helper()
	w.scrolls()
	w.ready("deny")
}

// scrolls reads the lasting rule and then scrolls to the buttons. It waits until the page has noticed the
// reading and the scrolling.
func (p *page) scrolls() {
	p.t.Helper()
	p.readsBy("document.querySelector('dialog .foot')", "document.querySelector('dialog .hint')")
	p.does(script("document.querySelector('dialog .actions').scrollIntoView({block: 'end'})"))
	p.frames()
}

// frames waits until the browser has drawn the page twice.
func (p *page) frames() {
	p.t.Helper()
	p.does(script("globalThis.drawn = 0; requestAnimationFrame(() => requestAnimationFrame(() => { globalThis.drawn = 1; }))"))
	p.sees("globalThis.drawn")
}

// This test makes the pictures of a lasting rule for the documentation.
func TestPicturesOfALastingRule(t *testing.T) {
	if os.Getenv("NOD_TEST_PICTURES") == "" {
		t.Skip("NOD_TEST_PICTURES names no directory")
	}
	r, nod := startStandIn(t)
	nod.shows(peopletest.UnseenPrompt(0))
	for _, width := range []int64{360, 768, 1440} {
		p := r.visits("ann", width, map[int64]int64{360: 740, 768: 1024, 1440: 900}[width])
		p.readsAll("unseen-0")
		p.unfolds("Allow from now on")
		p.scrolls()
		p.keeps(fmt.Sprintf("lasting-%d.png", width))
		p.ready("allow")
		p.keeps(fmt.Sprintf("lasting-rule-%d.png", width))
		p.does(chromedp.Click("dialog .rule:nth-of-type(3)"))
		p.scrolls()
		p.ready("allow")
		p.keeps(fmt.Sprintf("lasting-agent-%d.png", width))
		p.does(chromedp.Click(".actions button:nth-of-type(2)"))
		p.ready("deny")
		p.keeps(fmt.Sprintf("lasting-denial-%d.png", width))
	}
}

func (w *onPage) Sees() string {
	w.rests()
	return strings.ReplaceAll(value[string](w.page, inView), w.prompt.PendingID, "")
}

func (w *onPage) May() (all []peopletest.Pressable) {
	w.rests()
	for _, label := range value[[]string](w.page, pressables) {
		all = append(all, peopletest.Pressable{Label: label, Chooses: strings.HasPrefix(label, "- ")})
	}
	return all
}

func (w *onPage) Press(label string) {
	i := slices.IndexFunc(w.May(), func(p peopletest.Pressable) bool { return p.Label == label })
	w.does(script(fmt.Sprintf(`{ const {e, value} = globalThis.pressable[%d];
		if (value === undefined) e.click();
		else { e.value = value; e.dispatchEvent(new Event("input", {bubbles: true})); } }`, i)))
	w.frames()
	// After an answer the page shows the outcome. After a changed choice, or after the first of two
	// presses, the buttons are inactive for a moment.
	w.sees(fmt.Sprintf("document.querySelector('dialog .outcome') || %s?.getAttribute('aria-disabled') === 'false'", button("deny")))
}

func (w *onPage) Said() *schemas.Answer {
	for _, a := range w.nod.said() {
		if a.PendingID == w.prompt.PendingID {
			return &a
		}
	}
	return nil
}

// identical returns a question for n identical calls.
func identical(id string, n int) schemas.Prompt {
	r := shell("S", id, "make release")
	r.CreatedAt = time.Now().UTC()
	digest, err := schemas.Digest(&r)
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	return schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: "S", PendingID: id, Revision: uint64(n), Agent: "local", Request: r, Digest: digest,
		Risk: schemas.RiskMedium, Deadline: r.CreatedAt.Add(time.Hour), Waiters: n, Waiting: n,
	}
}

// The list and the dialog show the number of identical calls. An answer covers the number of calls
// that the page showed.
func TestAnAnswerIsForTheCallsOnThePage(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestOneAnswerDecidesIdenticalRequests answers such calls")
	r, nod := startStandIn(t)
	p := r.visits("ann", 1024, 900)
	three := identical("one", 3)
	nod.shows(three)
	p.sees(row("one") + "?.innerText.includes('×3 · 3 identical calls wait')")
	p.opens("one")
	p.Contains(p.text("dialog .text"), "×3 · 3 identical calls wait: allow once lets these 3 run")
	p.ready("allow")
	p.Equal("Allow once ×3", p.text(".actions .allow"))
	p.keeps("calls-dialog.png")

	// Another identical call arrives, and the page shows the new number.
	four := identical("one", 4)
	four.Request, four.Digest = three.Request, three.Digest
	nod.shows(four)
	p.sees("document.querySelector('.actions .allow').innerText === 'Allow once ×4'")
	p.Contains(p.text("dialog .text"), "×4 · 4 identical calls wait")
	p.sees(row("one") + "?.innerText.includes('×4')")

	five := four
	five.Waiters, five.Waiting = 5, 5
	nod.learns(five)
	p.ready("allow")
	p.does(chromedp.Click(".actions .allow"))
	p.ends("Allowed once")
	r.Equal(4, nod.said()[0].Waiters)

	nod.shows(identical("two", 2))
	p.does(script("document.querySelector('.close').click()"))
	p.goes("#/session/S")
	p.sees(card("two") + "?.innerText.includes('×2')")
	more := nod.prompts[schemas.Key("S", "two")]
	more.Waiters, more.Waiting, more.Revision = 3, 3, 9
	nod.shows(more)
	p.sees(card("two") + "?.innerText.includes('×3')")
	p.inline("two", "deny")
	p.sees(card("two") + ".querySelector('.outcome')?.innerText.includes('Denied · 3 calls')")
	r.Equal(3, nod.said()[1].Waiters)
	p.Contains(value[string](p, card("two")+".innerText"), "The same call is denied for 10 minutes as well.")
}

// One list contains grants and denials, and a user can end each of them there.
func TestStandingAnswersAreInOneList(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAStandingAnswerIsListedAndRevoked is the same without a browser")
	r, nod := startStandIn(t)
	now := time.Now().UTC()
	given := func(id string, change func(*schemas.StandingAnswer)) {
		g := schemas.StandingAnswer{
			GrantID: id, Scope: schemas.ScopeSession, SessionID: "S", Agent: "local", Question: "q-" + id,
			By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "web"}, CreatedAt: now.Add(-time.Minute),
		}
		change(&g)
		nod.grants = append(nod.grants, g)
	}
	given("rule", func(g *schemas.StandingAnswer) {
		g.Scope, g.Rules = schemas.ScopeAgent, []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"go", "test"}, Prefix: true, Project: "/app"}}
	})
	given("once", func(g *schemas.StandingAnswer) {
		g.Call, g.Limited, g.Uses, g.ExpiresAt = &schemas.ExactCall{ToolName: "Bash", Title: "make release"}, true, 1, now.Add(time.Hour)
	})
	given("denial", func(g *schemas.StandingAnswer) {
		g.Effect, g.Call, g.Message = schemas.EffectDeny, &schemas.ExactCall{ToolName: "Bash", Title: "rm -rf build"}, "use make clean"
		g.CreatedAt, g.ExpiresAt = now, now.Add(10*time.Minute)
	})
	for _, width := range []int64{360, 768, 1440} {
		p := r.visits("ann", width, 740)
		p.goes("#/grants")
		p.sees("document.querySelectorAll('.grant').length === 3")
		p.Equal([]string{"denial", "rule", "once"}, value[[]string](p, "[...document.querySelectorAll('.grant')].map((g) => g.dataset.id)"), "the newest first")
		p.True(value[bool](p, "document.documentElement.scrollWidth <= innerWidth"))
		p.keeps(fmt.Sprintf("standing-%d.png", width))
	}
	p := r.visits("ann", 1024, 740)
	p.goes("#/grants")
	of := func(id string) string { return "document.querySelector('.grant[data-id=" + id + "]')" }
	p.sees(of("denial"))
	text := value[string](p, of("denial")+".innerText")
	for _, words := range []string{"denied", "the same Bash call again: rm -rf build", "in session S", "by Ann", "question q-denial", `"use make clean"`, "Forget"} {
		p.Contains(text, words)
	}
	p.Contains(value[string](p, of("once")+".innerText"), "for 1 more call")
	p.Contains(value[string](p, of("rule")+".innerText"), "for agent local, in any session")
	p.does(script(of("denial") + ".querySelector('button').click()"))
	p.sees("document.querySelector('nod-grants .total').innerText.startsWith('Forgotten: the same Bash call')")
	r.Equal("ann", nod.grants[2].RevokedBy)
	p.does(script(of("rule") + ".querySelector('button').click()"))
	p.sees("document.querySelector('nod-grants .total').innerText.startsWith('Revoked: Bash(go test:*)')")
}

// The history shows that a denied call ran, or that an allowed call did not run.
func TestTheHistoryShowsTheAftermathOfACall(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestTheHistoryPageSaysWhoWhenAndWhere shows the same rows")
	r, nod := startStandIn(t)
	decided := func(id string, outcome schemas.Outcome, kind schemas.OptionKind, a schemas.AftermathKind, reason string) {
		p := identical(id, 1)
		p.Decision = &schemas.Decision{
			Type: schemas.TypeDecision, SessionID: "S", PendingID: id, Outcome: outcome, OptionKind: kind,
			By: schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"}, DecidedAt: time.Now().UTC(),
		}
		p.Aftermath = []schemas.Aftermath{{PendingID: id, Kind: a, Reason: reason, At: time.Now().UTC()}}
		nod.shows(p)
	}
	decided("one", schemas.Denied, schemas.RejectOnce, schemas.AftermathRan, "answered at the agent's terminal")
	decided("two", schemas.Allowed, schemas.AllowOnce, schemas.AftermathNeverRan, "the agent had gone on")
	p := r.visits("ann", 768, 740)
	p.goes("#/history")
	p.sees("document.querySelectorAll('.decided').length === 2")
	p.Contains(p.text("nod-history"), "Denied by Bob, but it ran: answered at the agent's terminal")
	p.Contains(p.text("nod-history"), "Allowed once by Bob, but it never ran: the agent had gone on")
	p.keeps("aftermath.png")
}
