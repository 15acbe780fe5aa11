package voice

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// echoLines is the number of spoken lines whose echo is recognised.
const echoLines = 8

// Line is a sentence for the client to speak.
type Line struct {
	Type      string   `json:"type"` // always say
	Seq       int      `json:"seq"`
	Text      string   `json:"text"`
	Kind      LineKind `json:"kind"`
	SessionID string   `json:"session_id,omitempty"`
	PendingID string   `json:"pending_id,omitempty"`
}

// LineKind tells the lines apart.
type LineKind string

// The kinds of lines.
const (
	KindQuestion LineKind = "question"
	KindReadBack LineKind = "read_back"
	KindOutcome  LineKind = "outcome"
	KindNote     LineKind = "note"
)

// mouth holds the lines for one client, and knows when the client speaks them. It is safe for concurrent
// use.
type mouth struct {
	margin  time.Duration // the time after the client's own speech in which words do not count
	rate    int           // the words that the client speaks in a minute
	reports bool          // the client reports the end of its own speech

	mu     sync.Mutex
	more   chan struct{} // closed and replaced if a line is added
	lines  []Line        // the lines that the client may not have
	seq    int           // the number of the last line
	said   []string      // the last lines, for echoes
	playTo time.Time     // the time at which the client will have spoken the lines that it fetched
	got    int           // the number of the last line that the client has fetched
	played int           // the number of the last line whose end a reporting client has reported
}

// say adds a line; about is the request that it is about, or nil.
func (m *mouth) say(kind LineKind, text string, about *schemas.Prompt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	line := Line{Type: typeSay, Seq: m.seq, Text: strings.Join(strings.Fields(text), " "), Kind: kind}
	if about != nil {
		line.SessionID, line.PendingID = about.SessionID, about.PendingID
	}
	m.lines = append(m.lines, line)
	m.said = append(m.said, line.Text)
	m.said = m.said[max(0, len(m.said)-echoLines):]
	if m.more != nil {
		close(m.more)
	}
	m.more = make(chan struct{})
}

// backlog returns the number of lines that the client has not fetched.
func (m *mouth) backlog() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seq - m.got
}

// next returns the lines after the line with the number after, and notes that the client begins to speak
// them. If there is none, it waits until there is one, or until ctx or ended ends; then it returns nil.
func (m *mouth) next(ctx context.Context, after int, ended <-chan struct{}) []Line {
	for {
		m.mu.Lock()
		m.lines = slices.DeleteFunc(m.lines, func(l Line) bool { return l.Seq <= after })
		lines, more := slices.Clone(m.lines), m.more
		m.fetched(lines, time.Now())
		m.mu.Unlock()
		if len(lines) > 0 {
			return lines
		}
		select {
		case <-more:
		case <-ended:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// fetched notes that the client has got lines. The caller holds the lock.
func (m *mouth) fetched(lines []Line, now time.Time) {
	for _, line := range lines {
		if line.Seq <= m.got {
			continue // sent again
		}
		if now.After(m.playTo) {
			m.playTo = now
		}
		m.playTo = m.playTo.Add(playTime(line.Text, m.rate))
		m.got = line.Seq
	}
}

// spoken notes that a client which reports the end of its speech has spoken all lines up to seq.
func (m *mouth) spoken(seq int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reports && seq > m.played && seq <= m.got {
		m.played, m.playTo = seq, now
	}
}

// overlaps reports whether an utterance may be, or may contain, the client's own speech: the client has
// lines that it has not spoken, or spoke while or shortly before the person did.
func (m *mouth) overlaps(u *Utterance) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.got < m.seq, m.reports && m.played < m.got:
		return true
	case !u.Began.IsZero() && u.Began.Before(m.playTo):
		return true
	}
	return u.Ended.Before(m.playTo.Add(m.margin))
}

// echoes reports whether words are a part of a line that the client spoke.
func (m *mouth) echoes(words []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.said, func(line string) bool { return containsWords(plainText(line), words) })
}

// plainText returns the words of a text in lower case, without punctuation.
func plainText(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r < 0x80 && !alphanumeric(byte(r)) || r == '“' || r == '”' || r == '’'
	})
}

// playTime estimates how long a speech program takes to speak text.
func playTime(text string, wordsPerMinute int) time.Duration {
	words := max(len(strings.Fields(text)), (len(text)+4)/5)
	return time.Duration(words) * time.Minute / time.Duration(wordsPerMinute)
}
