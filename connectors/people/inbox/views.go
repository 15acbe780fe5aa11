package inbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type kind int

const (
	browse       kind = iota // the list and the selected request
	full                     // the whole text of one request
	exact                    // the input of one request, exactly as its agent sent it
	batch                    // a group of identical requests
	choose                   // choosing an answer other than allow once and deny once; the view shows one such answer at a time
	reason                   // typing the reason for a denial
	word                     // typing the code word for an allow
	words                    // typing the answer to an agent's question
	standingView             // the list of standing answers
)

// A view is a layer of the screen.
type view struct {
	kind   kind
	keys   []string // keys of the requests in the view; empty for browse, which shows the selected request
	page   page
	choice int    // index of the selected choice or standing answer
	typed  []rune // the text typed so far
	answer answer // the answer with which the typed text is sent; only for views of the kinds word and words
}

// maxTyped is the maximum length of typed text, in characters.
const maxTyped = 2000

func (m *model) top() *view { return m.views[len(m.views)-1] }

// takesText reports whether a view is for typing text.
func (v *view) takesText() bool { return v.kind == reason || v.kind == word || v.kind == words }

// showsRequests reports whether a view shows requests in full.
func (v *view) showsRequests() bool { return v.kind == browse || v.kind == full || v.kind == batch }

// textView returns the view whose text is on the screen. A view for typing has no text, so the text of
// the view below it stays visible.
func (m *model) textView() *view {
	n := len(m.views) - 1
	for m.views[n].takesText() {
		n--
	}
	return m.views[n]
}

func (m *model) open(k kind, keys []string) { m.views = append(m.views, &view{kind: k, keys: keys}) }

func (m *model) back() { m.views = m.views[:max(1, len(m.views)-1)] }

// itemsOf returns the items of a view's requests. It omits requests that have left the list.
func (m *model) itemsOf(v *view) (items []*item) {
	if v.kind == browse {
		if i := m.requests.current(); i != nil {
			return []*item{i}
		}
		return nil
	}
	for _, key := range v.keys {
		if i := m.requests.items[key]; i != nil {
			items = append(items, i)
		}
	}
	return items
}

// pending returns the items that the user can still answer.
func pending(items []*item) []*item {
	return slices.DeleteFunc(slices.Clone(items), func(i *item) bool { return !i.open() || i.sending })
}

// closeEnded closes each view whose requests have all ended.
func (m *model) closeEnded() {
	for len(m.views) > 1 {
		v := m.top()
		items := m.itemsOf(v)
		if v.kind == standingView {
			return
		}
		if v.kind == choose && len(items) > 0 && len(choices(&items[0].Prompt)) == 0 {
			items = nil
		}
		if len(items) > 0 && (v.showsRequests() || len(pending(items)) > 0) {
			return
		}
		m.back()
	}
}

// layOut lays out a view's text for the screen.
func (m *model) layOut(v *view) {
	if v.kind == standingView && m.width > 0 {
		m.layOutStanding(v)
		return
	}
	items := m.itemsOf(v)
	if v.takesText() || len(items) == 0 || m.width == 0 {
		v.page = page{}
		return
	}
	if id := m.layoutID(v, items); id != v.page.id {
		top := v.page.top
		v.page.setLayout(people.Rows(fixedWidthParts(m.text(v, items)), m.width), m.width)
		if v.page.id = id; len(pending(items)) == 0 { // the user need not read a request that has ended
			v.page.top, v.page.seen = top, len(v.page.rows)
		}
	}
}

// layoutID returns a text that changes if a view's text or layout may change.
func (m *model) layoutID(v *view, items []*item) string {
	id := fmt.Sprint(m.width, " ", v.choice)
	for _, i := range items {
		id += fmt.Sprint(" ", i.Key(), i.Revision, i.open())
	}
	return id
}

func (m *model) text(v *view, items []*item) []people.Part {
	p := &items[0].Prompt
	switch v.kind {
	case choose:
		all := choices(p)
		v.choice = min(v.choice, len(all)-1)
		return all[v.choice].text(p)
	case exact:
		return people.Exact(p)
	case batch:
		all := make([][]people.Part, len(items))
		for n, i := range items {
			all[n] = partsOf(&i.Prompt)
			if i.open() {
				all[n] = append(all[n], people.Part{Label: "Until", Lines: []string{i.Deadline.Local().Format(time.DateTime + " MST")}})
			}
		}
		return combineParts(all)
	}
	parts := partsOf(p)
	if v.kind == browse { // on the screen with the list, the key v shows the rest of the text
		parts = slices.DeleteFunc(parts, func(part people.Part) bool { return part.Group == people.Rest })
	}
	return parts
}

func heading(n, of int) string { return fmt.Sprintf("%d of %d", n+1, of) }

// choice is any answer except allow once and deny once.
type choice struct {
	scope   schemas.Scope
	reach   int
	seconds int // how long the rule lasts; 0 means until a person revokes it
	option  schemas.Option
}

// choices returns the choices of a request. The first choices allow the request and make nod store one of
// its rules for the session. The options other than allow once and deny once follow.
func choices(p *schemas.Prompt) (all []choice) {
	once, may := p.Request.OptionOfKind(schemas.AllowOnce)
	question := p.Request.Kind == schemas.KindQuestion // each answer has a digit of its own, except one that the agent remembers, which takes two steps
	if p.Request.Kind == schemas.KindToolCall && may { // an allowed permission lasts for the session without a rule
		for n := range p.Remember {
			seconds, err := p.Remember[n].Lasts(schemas.ScopeSession, 0)
			if err == nil { // a later version of nod may offer a rule for less than a session
				all = append(all, choice{schemas.ScopeSession, n, seconds, once})
			}
		}
	}
	never, _ := p.Request.OptionOfKind(schemas.RejectOnce)
	for _, o := range p.Request.Options {
		if o.OptionID != once.OptionID && o.OptionID != never.OptionID && people.OptionWords(&p.Request, o) != "" && (!question || o.Kind.Remembered()) {
			all = append(all, choice{option: o})
		}
	}
	return all
}

// text describes a choice. For a rule it returns the rule's exact text. For an option it returns the
// name that the agent gave the option.
func (c choice) text(p *schemas.Prompt) []people.Part {
	if c.scope == "" {
		parts := []people.Part{
			{Label: "Answer", Lines: []string{people.OptionWords(&p.Request, c.option)}},
			{Label: "Which the agent calls", Quote: true, Lines: people.Lines(c.option.Name)},
		}
		if c.option.Kind.Remembered() {
			parts = append(parts, people.Part{Label: "Note", Lines: []string{people.AgentRemembers}})
		}
		return parts
	}
	reach := p.Remember[c.reach]
	g := schemas.StandingAnswer{Scope: c.scope, Rules: reach.Rules, Permissions: reach.Permissions}
	if c.seconds > 0 {
		g.ExpiresAt = g.CreatedAt.Add(time.Duration(c.seconds) * time.Second)
	}
	return []people.Part{
		{Label: "Besides this call, nod will allow", Quote: true, Lines: people.Lines(g.Reach())},
		{Label: "Where", Lines: []string{strings.TrimPrefix(people.ScopeAndTerm(&g), ", ")}},
		{Label: "To end it", Lines: []string{"g lists the standing answers and ends them; nod revoke does too"}},
	}
}

// paste adds text to the typed text. In a view that is not for typing it does nothing.
func (v *view) paste(text string) {
	if v.takesText() {
		v.typed = append(v.typed, []rune(text)...)
		v.typed = v.typed[:min(len(v.typed), maxTyped)]
	}
}
