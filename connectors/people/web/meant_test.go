package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nodbus/nod/connectors/people/peopletest"
)

// keyDown returns a script that presses a key as the browser does, at the element with the focus. The
// parameter repeat is true for a key that is held down.
func keyDown(key string, repeat bool) string {
	press := "new KeyboardEvent('keydown', {key: '" + key + "', bubbles: true, cancelable: true, repeat: false})"
	if repeat {
		press = strings.Replace(press, "repeat: false", "repeat: true", 1)
	}
	return "document.activeElement.dispatchEvent(" + press + ")"
}

// A key that is held down answers one request. It does not answer the next request, which then
// appears in the same place.
func TestAHeldKeyAnswersOneRequest(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestASecondClickOfADoubleClickAnswersNothing is the same for clicks")
	r := start(t)
	r.asks("S", "one", `{}`)
	r.asks("S", "two", `{}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("two"))
	p.presses("j")
	p.ready("allow")
	p.does(script(keyDown("a", false)))
	p.shows("two")
	p.ready("allow")
	p.True(value[bool](p, "!"+keyDown("a", true)), "the page takes the repetition and does nothing")
	p.True(value[bool](p, "!"+keyDown("Enter", true)), "Deny has the focus")
	p.Equal("", p.text("dialog .status"), "no answer is being recorded")
	r.listed(r.opens("bob"), "two")
}

// Another approver answers a request while a user writes a message about it, and the field for
// the message disappears. The keys that the user still types must not act as shortcuts, which
// could open the next request and allow it.
func TestTheRestOfAMessageIsNoShortcut(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestDenyWithAMessageByKeyboardAlone types a message")
	r := start(t)
	r.asks("S", "one", `{}`)
	r.asks("S", "two", `{}`)
	p := r.visits("ann", 1024, 768)
	p.sees(row("two"))
	p.presses("j")
	p.ready("allow")
	p.presses("m")
	p.sees("document.activeElement.tagName === 'TEXTAREA'")
	p.presses("please ")
	r.terminal("bob", "S", "one", "reject_once")
	p.ends("Denied · Bob")
	for _, key := range []string{"j", "u", "s", "t", " ", "Enter", "a", "d"} {
		p.True(value[bool](p, "!"+keyDown(key, false)), "%s has no effect", key)
	}
	p.True(value[bool](p, row("two")+".classList.contains('current') === false"), "the next request was not opened")
	p.does(chromedp.Click("h1"))
	p.presses("j")
	p.shows("two")
	r.listed(r.opens("bob"), "two")
}

// The second click of a double click has no effect, because the user meant it for the request that the
// first click answered.
func TestASecondClickOfADoubleClickAnswersNothing(t *testing.T) {
	t.Parallel()
	r, nod := startStandIn(t)
	nod.shows(peopletest.UnseenPrompt(0))
	p := r.visits("ann", 1024, 768)
	p.readsAll("unseen-0")
	p.ready("allow")
	p.does(script(button("allow") + ".dispatchEvent(new MouseEvent('click', {bubbles: true, detail: 2}))"))
	p.Equal("", p.text("dialog .status"))
	p.does(script(button("allow") + ".dispatchEvent(new MouseEvent('click', {bubbles: true, detail: 1}))"))
	p.ends("Allowed once")
}

// The button "Allow all once" works only if no request of the session has an edited input, because it
// allows the calls as their agent sent them.
func TestAllowingAllIsForTheCallsAsTheyAre(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestAWholeSessionIsAnsweredTogether answers all")
	r := start(t)
	r.submits(shell("S", "one", "make one"))
	r.submits(shell("S", "two", "make two"))
	p := r.visits("ann", 1024, 2000)
	p.goes("#/session/S")
	p.sees(card("two"))
	all := "document.querySelector('.actions.all .allow')"
	p.sees(all + ".getAttribute('aria-disabled') === 'false'")
	fold := card("one") + ".querySelector('.answer-options .edits')"
	p.does(script(fold+".open = true"), script(`{ const area = `+fold+`.querySelector("textarea");
		area.value = "make three"; area.dispatchEvent(new Event("input", {bubbles: true})); }`))
	p.sees(card("one") + ".querySelector('.actions .allow').innerText === 'Allow as edited'")
	p.sees(card("one") + ".querySelector('.actions .allow').getAttribute('aria-disabled') === 'false'")
	p.Equal("true", value[string](p, all+".getAttribute('aria-disabled')"))
	p.does(script(fold + ".open = false"))
	p.sees(all + ".getAttribute('aria-disabled') === 'false'")
}

// A message on the page never covers a request, because the request could then count as read although the
// user cannot see it. In a narrow window, the message has its own space.
func TestANoticeCoversNoRequest(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestThePageFitsAPhone checks the layout")
	r := start(t)
	r.asks("S", "one", `{}`)
	r.asks("S", "two", `{}`)
	p := r.visits("ann", 360, 740)
	p.opens("one")
	p.ready("deny")
	p.does(script(button("deny") + ".click()"))
	p.shows("two")
	p.sees("document.querySelector('.toast')")
	p.True(value[bool](p, `(() => {
		const notice = document.querySelector(".toast").getBoundingClientRect(), text = document.querySelector("dialog .text").getBoundingClientRect();
		return notice.height > 0 && (notice.bottom <= text.top || notice.top >= text.bottom);
	})()`))
}

// The buttons that answer all requests of a session cover no request.
func TestTheButtonsForAllCoverNoRequest(t *testing.T) {
	t.Parallel()
	onlyLong(t, "TestThePageFitsAPhone checks the layout")
	r := start(t)
	for _, id := range []string{"one", "two"} {
		r.asks("S", id, `{"to":"`+strings.Repeat("long ", 400)+`"}`)
	}
	p := r.visits("ann", 1024, 768)
	p.goes("#/session/S")
	p.sees(card("two"))
	p.does(script(card("two") + ".querySelectorAll('.end')[1].scrollIntoView({block: 'end'})"))
	p.frames()
	p.True(value[bool](p, `(() => {
		const end = `+card("two")+`.querySelectorAll(".end")[1].getBoundingClientRect();
		return !document.elementFromPoint(end.left + end.width / 2, end.top - 4)?.closest(".actions.all");
	})()`))
}
