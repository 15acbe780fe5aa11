package opencode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tmaxmax/go-sse"
)

// maxEvent is the largest size of an event in bytes, far above the size of OpenCode's events. After a
// larger event, the connector reconnects to OpenCode. It loses no permission, because each new
// connection reads the list of pending permissions.
const maxEvent = 16 << 20

type event struct {
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
}

// readEvents calls the function handle for each event until the stream ends, and then returns an error,
// never nil. It skips data that is no event of OpenCode.
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

// references contains the ids in an event. The names of some fields differ in OpenCode before 1.1.
type references struct {
	SessionID    string `json:"sessionID"`
	RequestID    string `json:"requestID"`
	PermissionID string `json:"permissionID"`
	Reply        reply  `json:"reply"`
	Response     reply  `json:"response"` // OpenCode before 1.1
	Info         struct {
		ID string `json:"id"`
	} `json:"info"`
}

func (e event) references() references {
	var a references
	_ = json.Unmarshal(e.Properties, &a) // if the id is missing, "" matches no permission
	return a
}

func (a references) permission() string { return cmp.Or(a.RequestID, a.PermissionID) }
func (a references) session() string    { return cmp.Or(a.SessionID, a.Info.ID) }
