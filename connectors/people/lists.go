package people

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// Session is one conversation of an agent, described by its requests.
type Session struct {
	ID      string    `json:"session_id"`
	Agent   string    `json:"agent"`
	Name    string    `json:"agent_name,omitempty"`
	Project string    `json:"project,omitempty"`
	Label   string    `json:"session_label,omitempty"`
	Waiting int       `json:"waiting"`
	Asked   int       `json:"asked"` // number of stored requests
	LastAt  time.Time `json:"last_at"`
	Last    string    `json:"last"` // the summary of the newest request
}

// Sessions returns the sessions of prompts. Sessions with pending requests come first. Within both
// groups, the session with the newest request comes first.
func Sessions(prompts []schemas.Prompt) []Session {
	found := map[string]*Session{}
	for i := range prompts {
		p := &prompts[i]
		s := found[p.SessionID]
		if s == nil {
			s = &Session{ID: p.SessionID}
			found[p.SessionID] = s
		}
		s.Asked++
		if p.Decision == nil {
			s.Waiting++
		}
		if r := &p.Request; !r.CreatedAt.Before(s.LastAt) {
			s.Agent, s.Name, s.Project, s.Label = p.Agent, r.AgentName, r.Project, r.SessionLabel
			s.LastAt, s.Last = r.CreatedAt, Summary(p, 100)
		}
	}
	var all []Session
	for _, s := range found {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Session) int {
		if a.Waiting > 0 != (b.Waiting > 0) {
			return b.Waiting - a.Waiting
		}
		if c := b.LastAt.Compare(a.LastAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// SessionTable returns a header and one line for each session. It cuts lines to width columns; if
// width is 0, it cuts none.
func SessionTable(all []Session, now time.Time, width int) string {
	t := table{titles: []string{"SESSION", "AGENT", "PROJECT", "WAITING", "LAST", "WHAT"}}
	for i := range all {
		s := &all[i]
		project := ""
		if s.Project != "" {
			project = path.Base(s.Project)
		}
		waiting := "–"
		if s.Waiting > 0 {
			waiting = count(s.Waiting, "request")
		}
		t.add(Line(orElse(s.Label, s.ID)), Line(orElse(s.Name, s.Agent)), Line(project), waiting, compactDuration(now.Sub(s.LastAt))+" ago", s.Last)
	}
	return t.text(width)
}

// HistoryTable returns a header and one line for each decided prompt. It cuts lines to width columns;
// if width is 0, it cuts none. It gives times of day in the time zone of now.
func HistoryTable(prompts []schemas.Prompt, now time.Time, width int) string {
	t := table{titles: []string{"WHEN", "AGENT", "WHAT", "OUTCOME"}}
	most := 1 << 16
	if width > 0 {
		most = max(16, width/3)
	}
	for i := range prompts {
		p := prompts[i]
		p.Request.CreatedAt = p.Request.CreatedAt.In(now.Location())
		t.add(clock(p.Decision.DecidedAt.In(now.Location()), now), cut(Line(orElse(p.Request.AgentName, p.Agent)), 24), Summary(&p, most), Outcome(p.Decision, &p))
	}
	return t.text(width)
}

// table is text in columns. Only the last column is cut if a line is wider than the terminal.
type table struct {
	titles []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) text(width int) string {
	widths := make([]int, len(t.titles))
	all := append([][]string{t.titles}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], Cells(cell)+2)
		}
	}
	var b strings.Builder
	for _, row := range all {
		left := width
		for i, cell := range row[:len(row)-1] {
			b.WriteString(pad(cell, widths[i]))
			left -= widths[i]
		}
		last := row[len(row)-1]
		if width > 0 {
			last = cut(last, max(left, Cells(cutMark)))
		}
		b.WriteString(last + "\n")
	}
	return b.String()
}
