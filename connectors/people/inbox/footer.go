package inbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// footer returns the rows with the status and the keys. The parameter barred is the reason why the user
// cannot allow the requests, or "". The number of rows is the same for every value of barred.
func (m *model) footer(barred string) []string {
	rows := []string{""} // the caller replaces this empty row by the ruler
	items := m.itemsOf(m.top())
	for _, text := range append(m.notices(), answerNotices(items)...) {
		if text != "" {
			rows = append(rows, rowsOf(text, m.width)...)
		}
	}
	open := pending(items)
	standing := m.requestStatus(items)
	if len(open) > 0 && m.top().kind != reason && m.top().kind != exact {
		standing = appendVerdict(standing, verdict(m.top(), open, barred), m.width)
	}
	rows = append(rows, standing...)
	if m.top().takesText() {
		return append(rows, m.entryRows()...)
	}
	all, now := m.keys(open, ""), m.keys(open, barred)
	for range len(all) - len(now) {
		rows = append(rows, "")
	}
	return append(rows, now...)
}

// ruler returns the line below the body. If the page has more rows than the body, the line contains
// the numbers of the visible rows.
func ruler(p *page, body, width int) string {
	text := ""
	if len(p.rows) > body && body > 0 {
		text = fmt.Sprintf("── rows %d–%d of %d ", p.top+1, min(len(p.rows), p.top+body), len(p.rows))
		if p.seen < p.top {
			text += fmt.Sprintf("· unread from %d ", p.seen+1)
		}
	}
	return dim(text + strings.Repeat("─", max(0, width-people.Cells(text))))
}

// notices returns the messages that do not depend on the selected request.
func (m *model) notices() []string {
	all := []string{m.o.Note, m.news, m.lockStatus()}
	if m.top().kind == standingView {
		all = append(all, m.standing.notice)
	}
	if m.offline {
		all = append(all, "nod is away: nothing can be allowed until it is back.")
	}
	if m.closing {
		all = append(all, "Closing once your answer is recorded. Ctrl-C again does not wait.")
	}
	return all
}

// answerNotices returns the reasons why the last answers to items did not count. It returns at most
// three reasons.
func answerNotices(items []*item) (all []string) {
	for _, i := range items {
		all = append(all, i.notice)
	}
	return firstThree(all)
}

// firstThree removes each row that equals the row before it. It returns at most three of the remaining
// rows.
func firstThree(rows []string) []string {
	rows = slices.Compact(rows)
	return rows[:min(3, len(rows))]
}

// lockStatus describes the input lock. If the user wants no lock, it returns the reason why nod refused
// the last lock, or "".
func (m *model) lockStatus() string {
	session := people.Line(m.lock.wanted)
	switch {
	case session == "":
		return m.lock.notice
	case m.lock.held == m.lock.wanted && m.lock.granted:
		return "You hold session " + session + ": its new requests go to you first, for a short time."
	}
	return "Session " + session + " is not held now, because you are away."
}

// requestStatus returns the time left until the earliest deadline of the items. If none of the items
// is pending, it says that an answer is being recorded, or returns the items' outcomes.
func (m *model) requestStatus(items []*item) []string {
	open := pending(items)
	switch {
	case len(items) == 0:
		return nil
	case len(open) > 0:
		first := slices.MinFunc(open, func(a, b *item) int { return a.Deadline.Compare(b.Deadline) })
		return rowsOf(m.countdown(&first.Prompt), m.width)
	case slices.ContainsFunc(items, func(i *item) bool { return i.sending }):
		return rowsOf(people.Recording, m.width)
	}
	var rows []string
	for _, i := range items {
		rows = append(rows, rowsOf(people.Outcome(i.Decision, &i.Prompt), m.width)...)
	}
	return firstThree(rows)
}

// countdown returns a request's remaining time, and the effect of its deadline. If the broker's time
// is unknown, it returns the deadline instead of the remaining time.
func (m *model) countdown(p *schemas.Prompt) string {
	then := "then it is denied"
	switch p.Request.Kind {
	case schemas.KindPermission:
		then = "then nothing is granted"
	case schemas.KindQuestion:
		then = "then it ends unanswered"
	}
	left := p.Deadline.Sub(m.now())
	switch {
	case !m.skewKnown:
		return "Until " + p.Deadline.UTC().Format(time.DateTime+" UTC") + ", " + then
	case left <= 0:
		return "Its time has passed."
	}
	return formatCountdown(left) + " left, " + then
}

// formatCountdown formats a duration, such as 6d 23h, 3h 04m or 14:59.
func formatCountdown(left time.Duration) string {
	seconds := int(left / time.Second)
	switch {
	case left >= 24*time.Hour:
		return fmt.Sprintf("%dd %dh", seconds/86400, seconds/3600%24)
	case left >= time.Hour:
		return fmt.Sprintf("%dh %02dm", seconds/3600, seconds/60%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// appendVerdict adds a verdict at the end of the last row, or in a new row. It uses the last row only if
// the longest possible verdict would fit there, so that the number of rows is the same for every verdict.
func appendVerdict(rows []string, verdict string, width int) []string {
	if last := len(rows) - 1; last >= 0 && people.Cells(rows[last])+3+maxVerdict <= width {
		rows[last] += " · " + verdict
		return rows
	}
	return append(rows, verdict)
}

// maxVerdict is the width of the longest text that verdict returns, in columns.
const maxVerdict = 40

// verdict returns a text for the footer. It says that the key y allows the request, or why the key does
// not allow it.
func verdict(v *view, open []*item, barred string) string {
	question := isQuestion(open)
	unseen := slices.ContainsFunc(open, func(i *item) bool { return len(i.Unseen) > 0 })
	switch {
	case barred != "" && question:
		return "No answer: " + barred
	case question:
		return "Shown whole: a digit answers"
	case barred != "":
		return "No Allow: " + barred
	case unseen && v.showsRequests():
		return "Shown, but not all the code: y allows it"
	case v.kind == batch:
		return "All is shown: y allows each of them once"
	case v.kind == choose, v.kind == word:
		return "Shown whole"
	}
	return "Shown whole: y allows exactly this"
}

type key struct{ name, does string }

// keys returns the rows that list the keys with an effect.
func (m *model) keys(open []*item, barred string) []string {
	v := m.top()
	var all []key
	if len(open) > 0 && v.kind != exact {
		all = m.answerKeys(v, open, barred)
	}
	if v.kind == standingView {
		return wrapKeys(m.standingKeys(), m.width)
	}
	if v.kind == browse {
		if len(m.requests.order) > 0 {
			all = append(all, key{"v", "full"}, key{"e", "exact"})
		}
		if len(m.requests.order) > 1 {
			all = append(all, key{"↑↓", "next"})
		}
		if m.lock.wanted != "" {
			all = append(all, key{"l", "let go"})
		} else if len(m.requests.order) > 0 {
			all = append(all, key{"l", "hold"})
		}
		if m.o.StandingAnswers != nil {
			all = append(all, key{"g", "standing answers"})
		}
		return wrapKeys(append(all, key{"esc", "close"}), m.width)
	}
	if v.kind == full {
		all = append(all, key{"e", "exact"})
	}
	return wrapKeys(append(all, key{"space ↑↓", "read on"}, key{"esc", "back"}), m.width)
}

// answerKeys returns the keys that answer a request, and the keys that open a view with other answers.
func (m *model) answerKeys(v *view, open []*item, barred string) (all []key) {
	if isQuestion(open) {
		return questionKeys(&open[0].Prompt, barred)
	}
	yes := "once"
	more := choices(&open[0].Prompt)
	switch {
	case v.kind == choose:
		if yes = "answer so"; more[v.choice].scope != "" {
			yes = "allow with this rule"
		}
	case open[0].Request.Kind == schemas.KindPermission:
		yes = "for the session"
	case v.kind != batch && people.Times(&open[0].Prompt) != "":
		yes += " " + people.Times(&open[0].Prompt)
	}
	if barred == "" || v.kind == choose && !more[v.choice].option.Kind.Allows() {
		all = append(all, key{"y", yes})
	}
	if v.kind == choose && len(more) > 1 {
		all = append(all, key{"←→", "another"})
	}
	if v.kind == choose {
		return all
	}
	if v.kind != batch && len(more) > 0 {
		name := "1"
		if n := min(maxDigits, len(more)); n > 1 {
			name = fmt.Sprintf("1–%d", n)
		}
		all = append(all, key{name, map[bool]string{true: "from now on", false: "more"}[more[0].scope != ""]})
	}
	all = append(all, key{"n", "deny"}, key{"r", "deny, say why"})
	if v.kind == browse {
		if n := len(m.requests.alike(open[0])); n > 1 {
			all = append(all, key{"b", fmt.Sprintf("%d alike", n)})
		}
	}
	return all
}

// maxDigits is the greatest number of options that a digit can choose.
const maxDigits = 9

// questionKeys returns the keys that answer an agent's question.
func questionKeys(p *schemas.Prompt, barred string) (all []key) {
	for i, o := range p.Request.Offered()[:min(maxDigits, len(p.Request.Offered()))] {
		if barred == "" || !o.Kind.Allows() {
			all = append(all, key{fmt.Sprint(i + 1), people.Shorten(o.Name, 24)})
		}
	}
	return append(all, key{"n", "no answer"}, key{"r", "no answer, say why"})
}

// wrapKeys arranges keys in rows of at most width columns. It never breaks a row inside a key's text.
func wrapKeys(keys []key, width int) []string {
	var rows []string
	used := width
	for _, k := range keys {
		size := people.Cells(k.name+" "+k.does) + 2
		if used+size > width+2 {
			rows, used = append(rows, ""), 0
		}
		rows[len(rows)-1] += bold(k.name) + " " + k.does + "  "
		used += size
	}
	return rows
}

// entryRows returns the rows of a view for typing: the label, the last part of the typed text,
// and the keys.
func (m *model) entryRows() []string {
	v := m.top()
	ask, text := "Deny, and tell the agent why:", people.Line(string(v.typed))
	switch v.kind {
	case words:
		ask = "Your answer:"
	case word:
		ask, text = "The code word:", strings.Repeat("•", len(v.typed))
	}
	rows := rowsOf("› "+text+"█", m.width)
	rows = append([]string{ask}, rows[max(0, len(rows)-3):]...)
	return append(rows, wrapKeys([]key{{"enter", "send"}, {"esc", "back"}}, m.width)...)
}
