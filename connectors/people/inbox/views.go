package inbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// kind is what a view is for.
type kind int

const (
	browse  kind = iota // the list and the selected request
	full                // one request, to be read to its end
	batch               // several that want the same
	choose              // the answers beyond once, one at a time
	reason              // why it is denied
	word                // the code word that an allow takes
	lasting             // the standing answers
)

// view is one thing that is open on the screen.
type view struct {
	kind   kind
	keys   []string // the requests that it is about; the list's is the selection
	page   page
	choice int    // which of the choices, or of the standing answers
	typed  []rune // in reason and word
	answer answer // that a code word completes
}

// maxTyped is how much may be typed as a reason.
const maxTyped = 2000

// top is the view that keys go to.
func (m *model) top() *view { return m.views[len(m.views)-1] }

// entry reports whether a view takes text.
func (v *view) entry() bool { return v.kind == reason || v.kind == word }

// reads reports whether a view shows requests whole.
func (v *view) reads() bool { return v.kind == browse || v.kind == full || v.kind == batch }

// reading is the view whose text is on the screen.
func (m *model) reading() *view {
	n := len(m.views) - 1
	for m.views[n].entry() {
		n--
	}
	return m.views[n]
}

func (m *model) open(k kind, keys []string) { m.views = append(m.views, &view{kind: k, keys: keys}) }

// back closes the view on top, but for the list.
func (m *model) back() { m.views = m.views[:max(1, len(m.views)-1)] }

// about are the requests that a view is about, as far as they are known.
func (m *model) about(v *view) (items []*item) {
	if v.kind == browse {
		if i := m.book.now(); i != nil {
			return []*item{i}
		}
		return nil
	}
	for _, key := range v.keys {
		if i := m.book.items[key]; i != nil {
			items = append(items, i)
		}
	}
	return items
}

// pending are those that can still be answered.
func pending(items []*item) []*item {
	return slices.DeleteFunc(slices.Clone(items), func(i *item) bool { return !i.open() || i.sending })
}

// closeEnded closes what there is nothing to answer in any more.
func (m *model) closeEnded() {
	for len(m.views) > 1 {
		v := m.top()
		items := m.about(v)
		if v.kind == lasting {
			return
		}
		if v.kind == choose && len(items) > 0 && len(choices(&items[0].Prompt)) == 0 {
			items = nil
		}
		if len(items) > 0 && (v.reads() || len(pending(items)) > 0) {
			return
		}
		m.back()
	}
}

// layOut gives a view its text.
func (m *model) layOut(v *view) {
	if v.kind == lasting && m.width > 0 {
		m.layOutLasts(v)
		return
	}
	items := m.about(v)
	if v.entry() || len(items) == 0 || m.width == 0 {
		v.page = page{}
		return
	}
	if id := m.identity(v, items); id != v.page.id {
		top := v.page.top
		text := people.Layout(steadyParts(m.text(v, items)), m.width)
		v.page.set(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), m.width)
		if v.page.id = id; len(pending(items)) == 0 { // nothing is left to be read to its end
			v.page.top, v.page.seen = top, len(v.page.rows)
		}
	}
}

// identity is equal for as long as a view's text is.
func (m *model) identity(v *view, items []*item) string {
	id := fmt.Sprint(m.width, " ", v.choice)
	for _, i := range items {
		id += fmt.Sprint(" ", i.Key(), i.Revision, i.open())
	}
	return id
}

// text is what a view has to show, whole.
func (m *model) text(v *view, items []*item) []people.Part {
	p := &items[0].Prompt
	switch v.kind {
	case choose:
		all := choices(p)
		v.choice = min(v.choice, len(all)-1)
		return all[v.choice].text(p)
	case batch:
		all := make([][]people.Part, len(items))
		for n, i := range items {
			all[n] = partsOf(&i.Prompt)
			if i.open() {
				all[n] = append(all[n], people.Part{Label: "Until", Lines: []string{i.Deadline.UTC().Format(time.DateTime + " UTC")}})
			}
		}
		return together(all)
	}
	return partsOf(p)
}

func heading(n, of int) string { return fmt.Sprintf("%d of %d", n+1, of) }

// choice is an answer beyond yes and no, once.
type choice struct {
	scope  schemas.Scope
	reach  int
	option schemas.Option
}

// choices are those that a request offers: to allow more than this call in its
// session, by each of the rules that nod can bound, and what options it has
// besides.
func choices(p *schemas.Prompt) (all []choice) {
	once, may := p.Request.OptionOfKind(schemas.AllowOnce)
	if p.Request.Kind != schemas.KindPermission && may { // a permission is for the session as it is
		for n := range p.Remember {
			all = append(all, choice{schemas.ScopeSession, n, once})
		}
	}
	never, _ := p.Request.OptionOfKind(schemas.RejectOnce)
	for _, o := range p.Request.Options {
		if o.OptionID != once.OptionID && o.OptionID != never.OptionID && people.OptionWords(&p.Request, o) != "" {
			all = append(all, choice{option: o})
		}
	}
	return all
}

// text is what a choice does: the exact rule that it leaves behind, or what the
// agent calls it.
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
	return []people.Part{
		{Label: "Besides this call, nod will allow from now on", Quote: true, Lines: people.Lines(g.Reach())},
		{Label: "Where", Lines: []string{strings.TrimPrefix(people.ScopeAndTerm(&g), ", ")}},
		{Label: "To end it", Lines: []string{"g lists what stands, and ends it; so does nod revoke"}},
	}
}

// paste adds text to what is typed; elsewhere it does nothing.
func (v *view) paste(text string) {
	if v.entry() {
		v.typed = append(v.typed, []rune(text)...)
		v.typed = v.typed[:min(len(v.typed), maxTyped)]
	}
}
