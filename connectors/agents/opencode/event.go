package opencode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tmaxmax/go-sse"
)

// maxEvent is far above what OpenCode sends; a larger event ends the connection,
// and what was pending is read anew.
const maxEvent = 16 << 20

// event is one of OpenCode's.
type event struct {
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
}

// read hears events until the stream ends, which is always an error. What is no
// event of OpenCode's is passed over.
func readEvents(stream io.Reader, handle func(event)) error {
	for got, err := range sse.Read(stream, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return fmt.Errorf("read OpenCode's events: %w", err)
		}
		var e event
		if json.Unmarshal([]byte(got.Data), &e) == nil {
			handle(e)
		}
	}
	return errors.New("OpenCode ended its events")
}

// about is what an event names, in the words of either generation.
type references struct {
	SessionID    string `json:"sessionID"`
	RequestID    string `json:"requestID"`
	PermissionID string `json:"permissionID"`
	Info         struct {
		ID string `json:"id"`
	} `json:"info"`
}

func (e event) references() references {
	var a references
	_ = json.Unmarshal(e.Properties, &a) // what it does not name is empty, and matches nothing
	return a
}

func (a references) permission() string { return cmp.Or(a.RequestID, a.PermissionID) }
func (a references) session() string    { return cmp.Or(a.SessionID, a.Info.ID) }
