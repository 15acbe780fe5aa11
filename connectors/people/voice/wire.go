package voice

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/nodbus/nod/schemas"
)

// The types of messages between a client and the server.
const (
	typeSay        = "say"        // a Line, to the client
	typeTranscript = "transcript" // a Message with a transcript, from the client
	typeSpoken     = "spoken"     // a Message from a client that reports the end of its speech
)

// Message is a message of a client.
type Message struct {
	Type string `json:"type"`
	// Text is a transcript. It counts only if Final is true, because speech programs later
	// replace a partial transcript.
	Text  string `json:"text,omitempty"`
	Final bool   `json:"final,omitempty"`
	// BeganMSAgo and EndedMSAgo tell when the person began and finished speaking, in milliseconds
	// before this message. If EndedMSAgo is missing, the person has just finished.
	BeganMSAgo *int `json:"began_ms_ago,omitempty"`
	EndedMSAgo int  `json:"ended_ms_ago,omitempty"`
	// PendingID is the id of the request that the person was asked about, if the client knows it.
	PendingID string `json:"pending_id,omitempty"`
	// Seq is the number of the line that the client has spoken.
	Seq int `json:"seq,omitempty"`
}

// maxAgo is the longest time before a message at which nod believes that the person spoke. nod shortens a
// longer time to maxAgo.
const maxAgo = time.Minute

// utterance converts a message with a transcript that arrived at the time now.
func (m *Message) utterance(now time.Time) Utterance {
	ago := func(ms int) time.Time {
		return now.Add(-min(max(time.Duration(ms), 0)*time.Millisecond, maxAgo))
	}
	u := Utterance{Text: m.Text, Final: m.Final, Ended: ago(m.EndedMSAgo), About: m.PendingID}
	if m.BeganMSAgo != nil {
		u.Began = ago(*m.BeganMSAgo)
	}
	return u
}

// take passes a client's message to its talk. It returns false if the talk has ended.
func (t *talk) take(ctx context.Context, m Message, now time.Time) bool {
	switch m.Type {
	case typeTranscript:
		u := m.utterance(now)
		return t.do(ctx, func(ctx context.Context) { t.listen(ctx, u) })
	case typeSpoken:
		t.spoken(m.Seq, now)
	}
	return true // ignore a type of message that only a later version of nod knows
}

// socket serves a client over a WebSocket.
func (s *server) socket(w http.ResponseWriter, r *http.Request) {
	user, ok := s.approver(w, r)
	if !ok {
		return
	}
	t, ok := s.start(w, r, user, false)
	if !ok {
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: s.addr.Origins})
	if err != nil {
		t.cancel(err) // Accept has replied with the error
		return
	}
	conn.SetReadLimit(maxMessage)
	go s.write(t, conn)
	go s.ping(t, conn)
	go func() {
		<-t.ended                                             // the end of the connection ends the loop below
		_ = conn.Close(websocket.StatusGoingAway, t.reason()) // fails if the client has gone
	}()
	limit := rate.NewLimiter(s.utterances, 2*utterances)
	for {
		typ, data, err := conn.Read(context.Background())
		var m Message
		switch {
		case err != nil:
			t.cancel(errGone)
			return
		case typ != websocket.MessageText || json.Unmarshal(data, &m) != nil:
			t.cancel(errMalformed)
		case limit.Wait(t.ctx) != nil || !t.take(t.ctx, m, time.Now()):
			t.cancel(errGone)
		}
	}
}

// writeWithin is the time limit for sending one line, and for the reply to a ping.
const (
	writeWithin = 10 * time.Second
	pingEvery   = 10 * time.Second
)

// write sends the talk's lines to the client until the talk ends or the connection fails.
func (s *server) write(t *talk, conn *websocket.Conn) {
	defer t.cancel(errGone)
	for after := 0; ; {
		lines := t.next(t.ctx, after, t.ended)
		if lines == nil {
			return
		}
		for _, line := range lines {
			data, err := json.Marshal(line)
			if err != nil {
				return
			}
			hop, cancel := context.WithTimeout(context.Background(), writeWithin)
			err = conn.Write(hop, websocket.MessageText, data)
			cancel()
			if err != nil {
				return
			}
			after = line.Seq
		}
	}
}

// ping sends pings to a client. If no reply comes, ping ends the connection.
func (s *server) ping(t *talk, conn *websocket.Conn) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ended:
			return
		case <-tick.C:
		}
		hop, cancel := context.WithTimeout(t.ctx, writeWithin)
		err := conn.Ping(hop)
		cancel()
		if err != nil {
			t.cancel(errGone)
			return
		}
	}
}

// speech serves the long polls of a client over HTTP. It replies with the lines whose numbers are greater
// than the parameter after. If no line comes within speechWithin, the reply is an empty list. The first
// poll opens the talk.
func (s *server) speech(w http.ResponseWriter, r *http.Request) {
	user, ok := s.approver(w, r)
	if !ok {
		return
	}
	t := s.talks.of(user)
	if t == nil || !t.polls {
		if t, ok = s.start(w, r, user, true); !ok {
			return
		}
	}
	t.polled.Store(time.Now().UnixNano())
	after, _ := strconv.Atoi(r.URL.Query().Get("after")) // 0, which stands for all lines, if the parameter after is no number
	ctx, cancel := context.WithTimeout(r.Context(), speechWithin)
	defer cancel()
	lines := t.next(ctx, after, t.ended)
	t.polled.Store(time.Now().UnixNano())
	if lines == nil {
		lines = []Line{}
	}
	reply(w, http.StatusOK, map[string][]Line{"speech": lines})
}

// transcript takes one transcript, or the end of a client's speech, over HTTP.
func (s *server) transcript(w http.ResponseWriter, r *http.Request) {
	user, ok := s.approver(w, r)
	if !ok {
		return
	}
	m := Message{Type: typeTranscript}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		refuse(w, http.StatusBadRequest, schemas.CodeBadRequest, `send {"text": "yes", "final": true}`)
		return
	}
	t := s.talks.of(user)
	if t == nil || !t.take(r.Context(), m, time.Now()) {
		refuse(w, http.StatusConflict, schemas.CodeConflict, "nothing changed: the client is not connected; get /v1/speech first")
		return
	}
	reply(w, http.StatusOK, map[string]bool{"heard": true})
}
