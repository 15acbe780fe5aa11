package people

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// minShort is the smallest length of a shortened id.
const minShort = 8

// ShortIDs returns a prefix of each prompt's id. The prefix is unique among these prompts, and has at
// least minShort characters, unless the id is shorter. If another stored record has the same prefix, nod
// refuses the prefix and decides nothing.
func ShortIDs(prompts []schemas.Prompt) []string {
	short, order := make([]string, len(prompts)), make([]int, len(prompts))
	for i := range prompts {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(prompts[i].PendingID, prompts[j].PendingID) })
	least := 0 // the length of the prefix that distinguishes an id from the id before it in sorted order
	for at, i := range order {
		id, next := prompts[i].PendingID, 0
		if at+1 < len(order) {
			next = commonPrefix(id, prompts[order[at+1]].PendingID) + 1
		}
		short[i] = id[:min(max(minShort, schemas.MinPrefix, least, next), len(id))]
		least = next
	}
	return short
}

// commonPrefix returns the length of the longest prefix that a and b share, in bytes.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// summaryBytes is the number of bytes of a payload that a summary reads.
const summaryBytes = 2048

// Summary returns the beginning of p's payload, such as a command, in at most width columns. If it
// leaves text out, it ends with ⟦…⟧, which the sanitised text of an agent cannot contain. A summary
// helps to find a request, but is never sufficient to decide it.
func Summary(p *schemas.Prompt, width int) string {
	subject, more := subjectOf(&p.Request), ""
	if len(subject) > summaryBytes {
		subject, more = strings.ToValidUTF8(subject[:summaryBytes], ""), cutMark
	}
	all := Lines(subject)
	if len(all) == 0 {
		return ""
	}
	if len(all) > 1 {
		more = cutMark
	}
	return cut(all[0]+more, width)
}

// subjectOf returns the piece of the payload that best distinguishes the request.
func subjectOf(r *schemas.Request) string {
	if r.Kind == schemas.KindPermission && len(r.Permissions) > 0 {
		return strings.Join(r.Permissions, " ")
	}
	if plan, ok := r.Plan(); ok {
		return plan
	}
	fields, err := fieldsOf(bytes.TrimSpace(r.ActionDetails))
	if r.Kind == schemas.KindQuestion {
		for _, f := range fields {
			if text, ok := textOf(f.raw); ok && f.name == "message" && text != "" {
				return r.Title + ": " + text
			}
		}
		return r.Title
	}
	for _, name := range mainFields {
		for _, f := range fields {
			if text, ok := textOf(f.raw); ok && f.name == name && text != "" {
				return text
			}
		}
	}
	var compact bytes.Buffer
	if err == nil && len(fields) == 0 ||
		json.Compact(&compact, r.ActionDetails) != nil {
		return r.Title
	}
	return compact.String()
}

// column is a column of the table. A narrow table omits the columns marked spare.
type column struct {
	title string
	spare bool
	cells []string
}

func (c *column) width() int {
	widest := Cells(c.title)
	for _, cell := range c.cells {
		widest = max(widest, Cells(cell))
	}
	return widest + 2
}

// minSummary returns the desired smallest width of the summaries, for a table that is width columns wide.
// To reach it, the table omits spare columns.
func minSummary(width int) int { return max(16, width/2) }

// Table returns a header and one line for each prompt, for a terminal that is width columns wide. The
// columns are id, age, agent, tool, risk, time left, the number of identical calls if a prompt has
// several, the votes if several people must allow a prompt, the next step of an escalation, and the
// Summary. If the summary would have less than half of the width, the table omits the column of the tool,
// and if necessary also that of the agent. If width is 0, for files and pipes, no line is cut. now is the
// broker's time. Without prompts the table is empty.
func Table(prompts []schemas.Prompt, now time.Time, width int) string {
	return PaintedTable(prompts, now, width, Plain)
}

// A Painter returns text with the colours of a style, and changes nothing else. ANSI and Plain are
// painters.
type Painter func(style payload.Style, text string) string

// Plain is the Painter without colours.
func Plain(_ payload.Style, text string) string { return text }

// PaintedTable is Table with its header and its risks painted.
func PaintedTable(prompts []schemas.Prompt, now time.Time, width int, paint Painter) string {
	if len(prompts) == 0 {
		return ""
	}
	widest, room := math.MaxInt, math.MaxInt
	if width > 0 {
		widest = max(10, width/6)
	}
	columns := columnsOf(prompts, now, widest)
	if width > 0 {
		columns, room = squeeze(columns, width)
	}
	widths := make([]int, len(columns))
	for i := range columns {
		widths[i] = columns[i].width()
	}
	var b strings.Builder
	for row := -1; row < len(prompts); row++ {
		for i, c := range columns {
			switch {
			case row < 0:
				b.WriteString(paint(payload.Faint, pad(c.title, widths[i])))
			case c.title == "RISK":
				b.WriteString(paint(riskStyle(prompts[row].Risk), pad(c.cells[row], widths[i])))
			default:
				b.WriteString(pad(c.cells[row], widths[i]))
			}
		}
		if row < 0 {
			b.WriteString(paint(payload.Faint, "WHAT") + "\n")
		} else {
			b.WriteString(Summary(&prompts[row], room) + "\n")
		}
	}
	return b.String()
}

func columnsOf(prompts []schemas.Prompt, now time.Time, widest int) []column {
	columns := []column{
		{title: "ID"}, {title: "AGE"}, {title: "AGENT", spare: true},
		{title: "TOOL", spare: true}, {title: "RISK"}, {title: "LEFT"}, {title: "CALLS"}, {title: "VOTES"}, {title: "NEXT"},
	}
	ids := ShortIDs(prompts)
	for i := range prompts {
		p := &prompts[i]
		for col, cell := range []string{
			Line(ids[i]),
			compactDuration(now.Sub(p.Request.CreatedAt)),
			cut(Line(orElse(p.Request.AgentName, p.Agent)), widest),
			cut(Line(orElse(p.Request.ToolName, string(p.Request.ActionType))), widest),
			riskWord(p.Risk),
			compactDuration(p.Deadline.Sub(now)),
			Times(p),
			votesCell(p),
			nextCell(p, now),
		} {
			columns[col].cells = append(columns[col].cells, cell)
		}
	}
	return slices.DeleteFunc(columns, func(c column) bool { // omit the columns CALLS, VOTES and NEXT if all their cells are empty
		return (c.title == "CALLS" || c.title == "VOTES" || c.title == "NEXT") && !slices.ContainsFunc(c.cells, func(cell string) bool { return cell != "" })
	})
}

// votesCell returns the number of votes, such as "1 of 2", if several people must allow p.
func votesCell(p *schemas.Prompt) string {
	if p.VotesNeeded < 2 {
		return ""
	}
	return fmt.Sprintf("%d of %d", len(p.Votes), p.VotesNeeded)
}

// nextCell returns "Bob 14:05" if p goes to Bob at that time, in the time zone of now.
func nextCell(p *schemas.Prompt, now time.Time) string {
	if p.Next == nil {
		return ""
	}
	return Line(cut(strings.Join(p.Next.To, ","), maxNextPeople)) + " " + p.Next.At.In(now.Location()).Format("15:04")
}

// maxNextPeople is the largest width of the people of the next step in a table, in columns.
const maxNextPeople = 20

func compactDuration(d time.Duration) string { return strings.ReplaceAll(shortDuration(d), " ", "") }

// squeeze removes spare columns of the table, beginning with the last, until the summaries have at least
// their desired width. It returns the remaining columns and the width of the summaries.
func squeeze(columns []column, width int) (left []column, room int) {
	for {
		room = width
		for _, c := range columns {
			room -= c.width()
		}
		i := len(columns) - 1
		for i >= 0 && !columns[i].spare {
			i--
		}
		if room >= minSummary(width) || i < 0 {
			return columns, max(room, Cells(cutMark))
		}
		columns = slices.Delete(columns, i, i+1)
	}
}
