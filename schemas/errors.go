package schemas

import (
	"encoding/json"
	"fmt"
)

// Code is the kind of an error. Codes are part of the wire format, so no version of nod changes or
// removes a code.
type Code string

// The error codes.
const (
	CodeBadRequest    Code = "BAD_REQUEST"      // the call is not JSON, or its type is unknown
	CodeValidation    Code = "VALIDATION_ERROR" // a field is wrong; the error's message names the field
	CodeNotFound      Code = "NOT_FOUND"        // the request, session or other object does not exist, or it belongs to another agent
	CodeUnauthorized  Code = "UNAUTHORIZED"     // the caller gave no identity
	CodeForbidden     Code = "FORBIDDEN"        // the caller's identity has no right to do this
	CodeConflict      Code = "CONFLICT"         // another answer came first, or the id belongs to another request
	CodeStale         Code = "STALE"            // the answer's digest differs from the request's, or the request timed out or was withdrawn
	CodeUndeliverable Code = "UNDELIVERABLE"    // nod can show the request to no approver
	CodeUnavailable   Code = "UNAVAILABLE"      // the failure is temporary; the caller should try again
	CodeInternal      Code = "INTERNAL_ERROR"
	CodeUnknownAction Code = "UNKNOWN_ACTION"
	CodeVoted         Code = "VOTED" // the allow is stored as a vote, and the request stays pending until more people allow it
)

// Error is the reply to a call that failed.
type Error struct {
	Type    string          `json:"type"`
	Code    Code            `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Errorf returns an Error with this code and a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Type: TypeError, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message. It leaves out the code, which is for programs.
func (e *Error) Error() string { return e.Message }

// Is reports whether target is an *Error with the same code and without a message, so that errors.Is(err,
// &Error{Code: c}) is true for every error with the code c.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// ErrorDetails are the details of an error. In a CONFLICT or STALE, Decision is the stored decision. In
// the FORBIDDEN of a thaw, CodeWord means that the right code word is missing.
type ErrorDetails struct {
	Decision *Decision `json:"decision,omitempty"`
	CodeWord bool      `json:"code_word,omitempty"`
}

// WithDecision stores the decision d in the details of e, and returns e.
func (e *Error) WithDecision(d *Decision) *Error {
	e.Details, _ = Encode(ErrorDetails{Decision: d}) // encoding a Decision cannot fail
	return e
}

// WithCodeWord stores in the details of e that the right code word is missing. It returns e.
func (e *Error) WithCodeWord() *Error {
	e.Details, _ = Encode(ErrorDetails{CodeWord: true}) // encoding ErrorDetails cannot fail
	return e
}

// Decision returns the decision in the details of e. It returns nil if there is none.
func (e *Error) Decision() *Decision {
	var d ErrorDetails
	if json.Unmarshal(e.Details, &d) != nil {
		return nil
	}
	return d.Decision
}
