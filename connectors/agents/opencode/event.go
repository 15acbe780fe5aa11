package opencode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tmaxmax/go-sse"
)

// maxEvent limits the size of an event, in bytes, far above that of OpenCode's events. A
// larger event ends the connection; the next connection reads the pending permissions.
const maxEvent = 16 << 20

type event struct {
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
}

// readEvents calls handle for each event until the stream ends, and then returns an error,
// which is never nil. It skips data that is not an event of OpenCode.
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
	return errors.New("OpenCode closed its event stream")
}

// references holds the ids in an event, in the formats of OpenCode before and since 1.1.
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
	_ = json.Unmarshal(e.Properties, &a) // a missing id stays empty and matches nothing
	return a
}

func (a references) permission() string { return cmp.Or(a.RequestID, a.PermissionID) }
func (a references) session() string    { return cmp.Or(a.SessionID, a.Info.ID) }
