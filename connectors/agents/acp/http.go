package acp

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/schemas"
)

// The paths of the two endpoints: clients subscribe to requests at the first, and answer a request at
// the second.
const (
	streamPath  = "/api/v1/acp/permissions/stream"
	respondPath = "/api/v1/acp/permissions/respond"
)

const (
	maxBody     = 64 << 10         // the largest size of the body of an answer, in bytes
	writeWithin = 30 * time.Second // the time limit to send one notification to one subscriber
)

// Answer sends nod a person's answer to the request r. optionID is the chosen option of r, or empty if
// the person dismissed the request. Answer returns nil only if this answer became the decision. If nod
// refuses the answer, the error is a *schemas.Error.
type Answer func(ctx context.Context, r schemas.Request, optionID string) error

// Handler returns an HTTP handler. With it, clients subscribe to the stream and answer requests. Every
// call must carry the bearer token, which is the parameter token. If token is empty, the handler
// refuses all calls. The handler calls the function answer to send nod an answer.
func (s *Stream) Handler(token string, answer Answer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+streamPath, s.serveStream)
	mux.HandleFunc("POST "+respondPath, func(w http.ResponseWriter, r *http.Request) {
		writeResult(w, s.respond(w, r, answer))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeResult(w, &problem{http.StatusUnauthorized, "send the token: Authorization: Bearer TOKEN"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// serveStream sends notifications to one subscriber until the subscriber disconnects or reads too
// slowly.
func (s *Stream) serveStream(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has already sent the error to the client
	}
	defer func() { _ = conn.CloseNow() }() // CloseNow fails if the connection is closed already
	gone := conn.CloseRead(r.Context())
	sub, first := s.subscribe()
	defer s.unsubscribe(sub)
	for _, notification := range first {
		if sendNotification(gone, conn, notification) != nil {
			return
		}
	}
	for {
		select {
		case <-gone.Done():
			return
		case notification, ok := <-sub.queue:
			if !ok {
				_ = conn.Close(sub.why.Code, sub.why.Reason) // Close fails if the client is gone
				return
			}
			if sendNotification(gone, conn, notification) != nil {
				return
			}
		}
	}
}

func sendNotification(ctx context.Context, conn *websocket.Conn, notification []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, notification)
}

type response struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

// problem contains the HTTP status and the error text with which the handler refuses a call.
type problem struct {
	status int
	text   string
}

func writeResult(w http.ResponseWriter, p *problem) {
	status, body := http.StatusOK, response{Success: true}
	if p != nil {
		status, body = p.status, response{Error: p.text}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // Encode fails if the client is gone
}

func (s *Stream) respond(w http.ResponseWriter, r *http.Request, answer Answer) *problem {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &problem{http.StatusUnsupportedMediaType, "Content-Type must be application/json"}
	}
	var body struct {
		SessionID string `json:"session_id"` // the request's session; optional, but checked if it is set
		PendingID string `json:"pending_id"`
		OptionID  string `json:"option_id"`
		Cancelled bool   `json:"cancelled"`
	}
	if err := readJSON(http.MaxBytesReader(w, r.Body, maxBody), &body); err != nil {
		return err
	}
	switch {
	case body.PendingID == "":
		return &problem{http.StatusBadRequest, "pending_id is required"}
	case body.Cancelled:
		body.OptionID = ""
	case body.OptionID == "":
		return &problem{http.StatusBadRequest, "option_id is required when not cancelled"}
	}
	request, ok := s.find(body.SessionID, body.PendingID)
	if !ok {
		return notFound(body.PendingID)
	}
	if _, offered := request.Option(body.OptionID); !offered && !body.Cancelled {
		return &problem{http.StatusBadRequest, "option_id is not one of the options offered"}
	}
	return refused(answer(r.Context(), request, body.OptionID), body.PendingID)
}

func readJSON(r io.Reader, v any) *problem {
	dec := json.NewDecoder(r)
	err := dec.Decode(v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one object")
		}
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &problem{http.StatusRequestEntityTooLarge, "the body is too long"}
	case err != nil:
		return &problem{http.StatusBadRequest, "the body is not the expected JSON: " + err.Error()}
	}
	return nil
}

func notFound(pendingID string) *problem {
	return &problem{http.StatusNotFound, "pending permission not found: " + pendingID}
}

// refused converts an error of Answer to a problem, and returns nil if there is no error. If nod has
// decided the request in the meantime, the problem is "not found", because the request is no longer
// pending.
func refused(err error, pendingID string) *problem {
	if err == nil {
		return nil
	}
	var own *schemas.Error
	if !errors.As(err, &own) {
		return &problem{http.StatusInternalServerError, err.Error()}
	}
	switch own.Code {
	case schemas.CodeNotFound, schemas.CodeStale, schemas.CodeConflict:
		return notFound(pendingID)
	case schemas.CodeForbidden, schemas.CodeUnauthorized:
		return &problem{http.StatusForbidden, own.Message}
	case schemas.CodeUnavailable:
		return &problem{http.StatusServiceUnavailable, own.Message}
	case schemas.CodeValidation:
		return &problem{http.StatusBadRequest, own.Message}
	}
	return &problem{http.StatusInternalServerError, own.Message}
}
