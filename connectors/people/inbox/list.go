package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// item is a request in the list.
type item struct {
	schemas.Prompt
	sending    bool   // an answer to the request is on its way
	notice     string // the reason why the last answer from this screen did not count
	contentKey string // a hash of the content; identical requests have the same hash
	heard      bool   // the terminal has rung for the request, or the user has pressed a key since the request arrived
}

func (i *item) open() bool { return i.Decision == nil }

// requestList contains the pending requests, oldest first. It also contains requests that have ended
// and are still on the screen.
type requestList struct {
	items    map[string]*item
	order    []string
	selected string
}

// position returns the index in b.order at which to insert a new item.
func (b *requestList) position(i *item) int {
	at, _ := slices.BinarySearchFunc(b.order, i, func(key string, i *item) int {
		if c := b.items[key].Request.CreatedAt.Compare(i.Request.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(key, i.Key())
	})
	return at
}

// apply stores a version of a request. It ignores a version that is older than the stored version, and
// never replaces a decided version by a pending version. If the new version ends a listed request, apply
// returns the request's item.
func (b *requestList) apply(p schemas.Prompt) (ended *item) {
	i := b.items[p.Key()]
	switch {
	case i == nil && p.Decision != nil:
		return nil
	case i == nil:
		i = &item{Prompt: p, contentKey: contentKeyOf(&p.Request)}
		b.order = slices.Insert(b.order, b.position(i), p.Key())
		b.items[p.Key()] = i
		if b.selected == "" {
			b.selected = p.Key()
		}
		return nil
	case p.Revision <= i.Revision, !i.open() && p.Decision == nil:
		return nil
	}
	wasOpen := i.open()
	i.Prompt = p
	if !wasOpen || i.open() {
		return nil
	}
	return i
}

func (b *requestList) remove(key string) {
	b.order = slices.DeleteFunc(b.order, func(k string) bool { return k == key })
	delete(b.items, key)
	if b.selected == key {
		b.selected = ""
	}
}

func (b *requestList) move(by int) {
	if len(b.order) > 0 {
		at := slices.Index(b.order, b.selected) + by
		b.selected = b.order[max(0, min(at, len(b.order)-1))]
	}
}

// prune removes requests that have ended and are not on the screen. The function looked reports whether
// an item is on the screen.
func (b *requestList) prune(looked func(*item) bool) {
	for key, i := range b.items {
		if !i.open() && !i.sending && !looked(i) {
			b.remove(key)
		}
	}
}

// hearAll records that the user has noticed all requests, so that the terminal does not ring for
// them.
func (b *requestList) hearAll() {
	for _, i := range b.items {
		i.heard = true
	}
}

func (b *requestList) current() *item { return b.items[b.selected] }

func (b *requestList) countOpen() int {
	n := 0
	for _, i := range b.items {
		if i.open() {
			n++
		}
	}
	return n
}

// maxBatch is the maximum number of requests in one batch.
const maxBatch = 50

// alike returns the keys of i and of the pending requests with the same content, oldest first and
// at most maxBatch.
func (b *requestList) alike(i *item) (keys []string) {
	for _, key := range b.order {
		if other := b.items[key]; other.open() && other.contentKey == i.contentKey {
			if keys = append(keys, key); len(keys) == maxBatch {
				break
			}
		}
	}
	return keys
}

// contentKeyOf returns a hash of a request's tool, input and permissions, which is the same for
// identical requests.
func contentKeyOf(r *schemas.Request) string {
	var input bytes.Buffer
	if json.Compact(&input, r.ActionDetails) != nil {
		input.Write(r.ActionDetails)
	}
	sum := sha256.New()
	for _, s := range append([]string{string(r.Kind), string(r.ActionType), r.ToolName, input.String()}, r.Permissions...) {
		length := len(s)
		sum.Write([]byte{byte(length), byte(length >> 8), byte(length >> 16), byte(length >> 24)})
		sum.Write([]byte(s))
	}
	return string(sum.Sum(nil))
}

// partsOf returns the text of a request without its deadline, because the screen shows a countdown.
func partsOf(p *schemas.Prompt) []people.Part {
	parts := slices.DeleteFunc(people.Parts(p, p.Request.CreatedAt), func(part people.Part) bool {
		return part.Label == "Expires" && !part.Field
	})
	if p.Request.Kind == schemas.KindQuestion {
		return parts
	}
	for i := range parts {
		if part := &parts[i]; part.Label == "Answers" && !part.Field && !part.Quote && part.Group == people.About {
			part.Lines = append(choiceLines(p), people.WithoutAnswers(part.Lines)...)
		}
	}
	return parts
}

// choiceLines returns the lines that list the choices of a request, each with the digit that
// opens it.
func choiceLines(p *schemas.Prompt) (all []string) {
	for n, c := range choices(p) {
		what := people.OptionWords(&p.Request, c.option) + ": " + people.Line(c.option.Name)
		if c.scope != "" {
			r := &p.Remember[c.reach]
			what = strings.ToLower(people.RuleHead(r)) + ": " + people.Line(r.String())
		}
		key := fmt.Sprint(n + 1)
		if n >= maxDigits {
			key = "s →"
		}
		all = append(all, "["+key+"] "+what)
	}
	return all
}

// combineParts returns the text of several requests. It begins with the parts that all requests have
// in common. The other parts of each request follow.
func combineParts(all [][]people.Part) []people.Part {
	var shared, text []people.Part
	for _, part := range all[0] {
		if !slices.ContainsFunc(all[1:], func(parts []people.Part) bool { return !containsPart(parts, part) }) {
			shared = append(shared, part)
		}
	}
	text = slices.Clone(shared)
	for n, parts := range all {
		text = append(text, people.Part{Label: heading(n, len(all))})
		for _, part := range parts {
			if !containsPart(shared, part) {
				text = append(text, part)
			}
		}
	}
	return text
}

func containsPart(parts []people.Part, part people.Part) bool {
	return slices.ContainsFunc(parts, func(p people.Part) bool {
		return p.Label == part.Label && p.Field == part.Field && p.Quote == part.Quote && slices.Equal(p.Lines, part.Lines)
	})
}
