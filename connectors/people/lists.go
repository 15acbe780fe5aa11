package people

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// Session is one conversation of an agent, described by its requests.
type Session struct {
	ID       string       `json:"session_id"`
	Agent    string       `json:"agent"`
	Name     string       `json:"agent_name,omitempty"`
	Project  string       `json:"project,omitempty"`
	Host     string       `json:"host,omitempty"`
	Label    string       `json:"session_label,omitempty"`
	State    SessionState `json:"state"`
	Waiting  int          `json:"waiting"`
	Risk     schemas.Risk `json:"risk,omitempty"` // the highest risk of the requests that wait
	Asked    int          `json:"asked"`          // number of requests that were counted
	ThisHour int          `json:"this_hour"`      // number of stored requests of the last 60 minutes
	LastAt   time.Time    `json:"last_at"`
	Last     string       `json:"last"` // the summary of the newest request
}

// SessionState is a session's state, derived from its requests.
type SessionState string

// The states of a session.
const (
	SessionWaiting SessionState = "waiting for you"       // a tool call or a permission of the session waits for an answer
	SessionAsking  SessionState = "waiting for an answer" // the session waits only for answers to questions of its agent
	SessionWorking SessionState = "working"               // the session's newest request is at most workingFor old
	SessionIdle    SessionState = "idle"
	SessionPast    SessionState = "past" // only the log has its requests
)

// workingFor is how long after its newest request a session counts as working.
const workingFor = 5 * time.Minute

// SessionTally builds the list of sessions from pages of requests.
type SessionTally struct {
	now   time.Time
	found map[string]*Session
	seen  map[string]bool // the keys of the counted requests, because two pages may contain the same request
}

// NewSessionTally returns an empty tally, which computes the ages of requests at the time now.
func NewSessionTally(now time.Time) *SessionTally {
	return &SessionTally{now, map[string]*Session{}, map[string]bool{}}
}

// Add counts the requests of a page that it has not counted before. The error is always nil.
func (t *SessionTally) Add(page []schemas.Prompt) error {
	for i := range page {
		p := &page[i]
		if t.seen[p.Key()] {
			continue
		}
		t.seen[p.Key()] = true
		s := t.found[p.SessionID]
		if s == nil {
			s = &Session{ID: p.SessionID}
			t.found[p.SessionID] = s
		}
		s.add(p, t.now)
	}
	return nil
}

// AddLogged counts a request of the log that it has not counted before.
func (t *SessionTally) AddLogged(l *schemas.LoggedRequest) {
	if t.seen[l.Question()] {
		return
	}
	t.seen[l.Question()] = true
	s := t.found[l.SessionID]
	if s == nil {
		s = &Session{ID: l.SessionID, State: SessionPast}
		t.found[l.SessionID] = s
	}
	p, _ := FromLog(l)
	s.Asked++
	if s.State == SessionPast {
		s.describe(&p, LoggedSummary(l, lastWidth))
	}
}

// Sessions returns the sessions. Sessions with requests that wait come first, then all other sessions.
// Within each of these two groups, the session with the newest request comes first.
func (t *SessionTally) Sessions() []Session {
	var all []Session
	for _, s := range t.found {
		if s.State == "" && t.now.Sub(s.LastAt) <= workingFor {
			s.State = SessionWorking
		}
		s.State = cmp.Or(s.State, SessionIdle)
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

func (s *Session) add(p *schemas.Prompt, now time.Time) {
	r := &p.Request
	s.Asked++
	if now.Sub(r.CreatedAt) <= time.Hour {
		s.ThisHour++
	}
	if p.Decision == nil {
		s.Waiting++
		if riskRank(p.Risk) > riskRank(s.Risk) || s.Risk == "" {
			s.Risk = p.Risk
		}
		if r.Kind != schemas.KindQuestion {
			s.State = SessionWaiting
		} else {
			s.State = cmp.Or(s.State, SessionAsking)
		}
	}
	s.describe(p, Summary(p, lastWidth))
}

// lastWidth is the largest width of Session.Last, in cells.
const lastWidth = 100

// describe takes the agent, the place and the label from the newest request. An older request only fills in
// what is still missing, because the log may lack the content of the newest request.
func (s *Session) describe(p *schemas.Prompt, last string) {
	r := &p.Request
	if !r.CreatedAt.Before(s.LastAt) {
		s.LastAt, s.Last, s.Agent = r.CreatedAt, last, p.Agent
		s.Name, s.Project, s.Host, s.Label = r.AgentName, r.Project, r.Host, r.SessionLabel
		return
	}
	s.Name, s.Project = orElse(s.Name, r.AgentName), orElse(s.Project, r.Project)
	s.Host, s.Label = orElse(s.Host, r.Host), orElse(s.Label, r.SessionLabel)
}

// riskRank orders risks. A risk that this version does not know counts as high.
func riskRank(r schemas.Risk) int {
	switch r {
	case schemas.RiskLow:
		return 1
	case schemas.RiskMedium:
		return 2
	}
	return 3
}

// PastSessionTable is like SessionTable, but has each session's id instead of its label, because the history
// finds a session by its id. It also has the session's host and the number of all its requests.
func PastSessionTable(all []Session, now time.Time, width int, paint Painter) string {
	t := table{titles: []string{"SESSION", "AGENT", "HOST", "PROJECT", "STATE", "ASKED", "LAST", "WHAT"}}
	for i := range all {
		s := &all[i]
		t.add(Line(s.ID), Line(orElse(s.Name, s.Agent)), Line(s.Host), ProjectName(s.Project), string(s.State), strconv.Itoa(s.Asked), clock(s.LastAt.In(now.Location()), now), s.Last)
	}
	return t.text(width, paint)
}

// SessionTable returns a header and one line for each session, for a terminal that is width columns wide.
// The header has colours. If width is 0, no line is cut.
func SessionTable(all []Session, now time.Time, width int, paint Painter) string {
	t := table{titles: []string{"SESSION", "AGENT", "PROJECT", "STATE", "HOUR", "LAST", "WHAT"}}
	for i := range all {
		s := &all[i]
		state := string(s.State)
		if s.Waiting > 1 {
			state += fmt.Sprintf(" ×%d", s.Waiting)
		}
		t.add(Line(orElse(s.Label, s.ID)), Line(orElse(s.Name, s.Agent)), ProjectName(s.Project), state, strconv.Itoa(s.ThisHour), compactDuration(now.Sub(s.LastAt))+" ago", s.Last)
	}
	return t.text(width, paint)
}

// HistoryTable returns a header and one line for each decided prompt and each request of the log, for a
// terminal that is width columns wide. If width is 0, no line is cut. Times of day are in the time zone
// of now. The header has colours.
func HistoryTable(prompts []schemas.Prompt, logged []schemas.LoggedRequest, now time.Time, width int, paint Painter) string {
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
	for i := range logged {
		l := logged[i]
		at := l.AskedAt
		if l.Decided != nil {
			at = l.Decided.At
		}
		l.AskedAt = l.AskedAt.In(now.Location())
		p, _ := FromLog(&l)
		t.add(clock(at.In(now.Location()), now), cut(Line(orElse(p.Request.AgentName, p.Agent)), 24), LoggedSummary(&l, most), LoggedOutcome(&l))
	}
	return t.text(width, paint)
}

// table is text in columns. Only the last column is cut if a line is wider than the terminal.
type table struct {
	titles []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) text(width int, paint Painter) string {
	widths := make([]int, len(t.titles))
	all := append([][]string{t.titles}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], Cells(cell)+2)
		}
	}
	var b strings.Builder
	for n, row := range all {
		style := payload.Plain
		if n == 0 {
			style = payload.Faint
		}
		left := width
		for i, cell := range row[:len(row)-1] {
			b.WriteString(paint(style, pad(cell, widths[i])))
			left -= widths[i]
		}
		last := row[len(row)-1]
		if width > 0 {
			last = cut(last, max(left, Cells(cutMark)))
		}
		b.WriteString(paint(style, last) + "\n")
	}
	return b.String()
}
