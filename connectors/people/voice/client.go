package voice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/internal/loopback"
	"github.com/nodbus/nod/schemas"
)

// Client is a voice client without microphone and loudspeaker. Other programs give it transcripts as
// lines of text, and speak the lines that it returns.
type Client struct {
	URL      string // the address of the voice connector
	Token    string
	Sessions []string // the sessions whose input lock the client acquires
	Log      *slog.Logger
}

// The pause before a client connects again is reconnectMin at first, and doubles up to
// reconnectMax. dialWithin is the time limit of one attempt.
const (
	reconnectMin = 500 * time.Millisecond
	reconnectMax = 5 * time.Second
	dialWithin   = 10 * time.Second
)

// refusal is an error that another attempt to connect cannot remedy, such as a refused token.
type refusal struct{ error }

// endpoint returns the URL of a path at the server. It returns an error if the client's token
// would travel unencrypted to another machine.
func (c *Client) endpoint(path string) (string, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "":
		return "", fmt.Errorf("%q is not the address of a voice connector: use one such as http://%s", c.URL, DefaultListen)
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback.Is(u.Hostname())):
		return "", fmt.Errorf("%q must begin with https://; http:// is for this machine alone", c.URL)
	}
	u.Path = path
	return u.String(), nil
}

// Pair submits a pairing code in the name of the client's token, and returns the user id that the
// token stands for.
func (c *Client) Pair(ctx context.Context, code string) (string, error) {
	address, err := c.endpoint("/v1/pair")
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		return "", fmt.Errorf("encode the code: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("send the code: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("reach the voice connector: %w: add connectors.voice to settings.json and start nod up again", errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", refused(resp)
	}
	return UserID(c.Token), nil
}

// refused returns the error that a server's reply contains.
func refused(resp *http.Response) error {
	var e schemas.Error
	if json.NewDecoder(http.MaxBytesReader(nil, resp.Body, maxMessage)).Decode(&e) != nil || e.Message == "" {
		return fmt.Errorf("the voice connector replied %s", resp.Status)
	}
	return errors.New(e.Message)
}

// Run connects to the server, and connects again after each lost connection. It sends each line from the
// channel heard as a transcript, and calls the function say for each line to speak. Run ends if ctx ends,
// the channel is closed, the server refuses the client, or the function returns an error. Lines from the
// channel that arrive without a connection are dropped, because the request that they answer may have
// ended.
func (c *Client) Run(ctx context.Context, heard <-chan string, say func(Line) error) error {
	for wait := reconnectMin; ; wait = min(2*wait, reconnectMax) {
		began := time.Now()
		err := c.connect(ctx, heard, say)
		var final refusal
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &final):
			return final.error
		}
		if time.Since(began) > reconnectMax {
			wait = reconnectMin
		}
		c.Log.Warn("voice: not connected; trying again", "after", wait, "error", err)
		if err := c.drop(ctx, heard, wait); err != nil {
			return err
		}
	}
}

var errNoEars = errors.New("the input has ended, so nothing can be heard any more")

// drop waits before the next attempt to connect, and discards the lines that are heard meanwhile.
func (c *Client) drop(ctx context.Context, heard <-chan string, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case _, ok := <-heard:
			if !ok {
				return errNoEars
			}
			c.Log.Warn("voice: not connected, so what was just said does not count")
		}
	}
}

// connect opens one connection and serves it until the connection ends.
func (c *Client) connect(ctx context.Context, heard <-chan string, say func(Line) error) error {
	address, err := c.endpoint("/v1/ws")
	if err != nil {
		return refusal{err}
	}
	if len(c.Sessions) > 0 {
		address += "?" + url.Values{"session": c.Sessions}.Encode()
	}
	dial, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, resp, err := websocket.Dial(dial, address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + c.Token}}})
	if err != nil {
		if resp != nil && resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusTooManyRequests {
			return refusal{refused(resp)}
		}
		return fmt.Errorf("reach the voice connector: %w", err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { stop(c.speak(ctx, conn, say)) }()
	for {
		select {
		case <-ctx.Done():
			_ = conn.Close(websocket.StatusNormalClosure, "")
			return context.Cause(ctx)
		case line, ok := <-heard:
			if !ok {
				return refusal{errNoEars}
			}
			m, ok := transcriptOf(line)
			if !ok {
				continue
			}
			data, err := json.Marshal(m)
			if err == nil {
				err = conn.Write(ctx, websocket.MessageText, data)
			}
			if err != nil {
				return fmt.Errorf("send a transcript, which does not count: %w", err)
			}
		}
	}
}

// speak passes the server's lines to the function say.
func (c *Client) speak(ctx context.Context, conn *websocket.Conn, say func(Line) error) error {
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			var closed websocket.CloseError
			if errors.As(err, &closed) && closed.Reason == tookOver || errors.As(err, &closed) && closed.Reason == noLongerKnown {
				return refusal{errors.New(closed.Reason)}
			}
			return fmt.Errorf("the connection has ended: %w", err)
		}
		var line Line
		if json.Unmarshal(data, &line) != nil || line.Type != typeSay {
			continue // only a later version of nod sends messages of this type
		}
		if err := say(line); err != nil {
			return refusal{fmt.Errorf("write what to speak: %w", err)}
		}
	}
}

// transcriptOf reads a line of a speech program, which is a plain transcript or a JSON object with the
// field text. ok is false for a blank line and for a partial transcript, which has a field partial or a
// field final that is false.
func transcriptOf(line string) (m Message, ok bool) {
	line = strings.TrimSpace(line)
	m = Message{Type: typeTranscript, Text: line, Final: true}
	if strings.HasPrefix(line, "{") {
		var said struct {
			Text    string           `json:"text"`
			Partial *json.RawMessage `json:"partial"`
			Final   *bool            `json:"final"`
		}
		if json.Unmarshal([]byte(line), &said) != nil || said.Partial != nil || said.Final != nil && !*said.Final {
			return m, false
		}
		m.Text = strings.TrimSpace(said.Text)
	}
	return m, m.Text != ""
}
