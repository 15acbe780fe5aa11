package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// item is a request as far as this screen knows it.
type item struct {
	schemas.Prompt
	sending    bool   // an answer is on its way
	said       string // what became of the last answer from here
	contentKey string // equal for requests that want the same
}

func (i *item) open() bool { return i.Decision == nil }

// book holds what is pending, oldest first, and what has ended for as long as
// it is looked at.
type requestList struct {
	items    map[string]*item
	order    []string
	selected string
}

// place is where a new item belongs in the order.
func (b *requestList) position(i *item) int {
	at, _ := slices.BinarySearchFunc(b.order, i, func(key string, i *item) int {
		if c := b.items[key].Request.CreatedAt.Compare(i.Request.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(key, i.Key())
	})
	return at
}

// take takes in a version of a request. An older one than is known changes
// nothing, and what is decided stays so. It returns the item where the request
// has just ended, kept or not.
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

// drop forgets a request.
func (b *requestList) remove(key string) {
	b.order = slices.DeleteFunc(b.order, func(k string) bool { return k == key })
	delete(b.items, key)
	if b.selected == key {
		b.selected = ""
	}
}

// move selects the request by places further on.
func (b *requestList) move(by int) {
	if len(b.order) > 0 {
		at := slices.Index(b.order, b.selected) + by
		b.selected = b.order[max(0, min(at, len(b.order)-1))]
	}
}

// prune forgets what has ended and is not looked at.
func (b *requestList) prune(looked func(*item) bool) {
	for key, i := range b.items {
		if !i.open() && !i.sending && !looked(i) {
			b.remove(key)
		}
	}
}

// now is the selected request, or nil.
func (b *requestList) current() *item { return b.items[b.selected] }

// waiting is how many are pending.
func (b *requestList) countOpen() int {
	n := 0
	for _, i := range b.items {
		if i.open() {
			n++
		}
	}
	return n
}

// maxBatch is how many requests are answered together.
const maxBatch = 50

// alike are the keys of the pending requests that want the same as i, the
// oldest first and no more than can be answered together.
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

// sameness is equal for two requests that want the same tool with the same
// input, or the same permissions.
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

// partsOf is the text of a request but for its deadline, which the screen
// counts down.
func partsOf(p *schemas.Prompt) []people.Part {
	return slices.DeleteFunc(people.Parts(p, p.Request.CreatedAt), func(part people.Part) bool {
		return part.Label == "Expires" && !part.Field
	})
}

// together is the text of several requests: what is the same of all of them
// once, then what is each one's own. Nothing of any is left out.
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
