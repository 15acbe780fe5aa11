package voice

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// echoLines is the number of spoken lines that nod remembers, to recognise their echo in what the
// microphone hears.
const echoLines = 8

// Line is a sentence for the client to speak.
type Line struct {
	Type      string   `json:"type"` // always "say"
	Seq       int      `json:"seq"`
	Text      string   `json:"text"`
	Kind      LineKind `json:"kind"`
	SessionID string   `json:"session_id,omitempty"`
	PendingID string   `json:"pending_id,omitempty"`
}

// LineKind says what a line is about.
type LineKind string

// The kinds of lines.
const (
	KindQuestion LineKind = "question"
	KindReadBack LineKind = "read_back"
	KindOutcome  LineKind = "outcome"
	KindNote     LineKind = "note"
)

// mouth contains the lines for one client, and estimates when the client speaks them. It is safe
// for concurrent use.
type mouth struct {
	margin  time.Duration // the time after the client's own speech in which words do not count
	rate    int           // the number of words that the client speaks in a minute
	reports bool          // the client reports the end of its own speech

	mu     sync.Mutex
	more   chan struct{} // closed and replaced whenever a line is added
	lines  []Line        // the lines that the client has perhaps not received
	seq    int           // the number of the last line that was added
	said   []string      // the texts of the last lines, to recognise their echo
	playTo time.Time     // the time at which the client will have spoken all lines that it fetched
	got    int           // the number of the last line that the client has fetched
	played int           // the number of the last line that the client has reported as spoken, if reports is set
}

// say adds a line for the client to speak. The parameter about is the request that the line is about, or
// nil.
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

// next returns the lines whose numbers are greater than the parameter after, and records that the client
// begins to speak them. If there are no such lines, next waits for one. When ctx ends or the channel
// ended is closed, next returns nil.
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

// fetched records that the client has received lines, and adds the time to speak them to playTo.
// The caller holds the lock.
func (m *mouth) fetched(lines []Line, now time.Time) {
	for _, line := range lines {
		if line.Seq <= m.got {
			continue // a line that the client gets a second time
		}
		if now.After(m.playTo) {
			m.playTo = now
		}
		m.playTo = m.playTo.Add(playTime(line.Text, m.rate))
		m.got = line.Seq
	}
}

// spoken records that the client has spoken all lines up to the one with the number seq. It has an effect
// only for clients that report the end of their speech.
func (m *mouth) spoken(seq int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reports && seq > m.played && seq <= m.got {
		m.played, m.playTo = seq, now
	}
}

// overlaps reports whether an utterance may contain the client's own speech. This is so if the client has
// not spoken all its lines yet, or was speaking during the utterance or shortly before it.
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

// echoes reports whether these words follow one another in a line that the client spoke lately.
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

// playTime estimates how long a speech program takes to speak the text.
func playTime(text string, wordsPerMinute int) time.Duration {
	words := max(len(strings.Fields(text)), (len(text)+4)/5)
	return time.Duration(words) * time.Minute / time.Duration(wordsPerMinute)
}
