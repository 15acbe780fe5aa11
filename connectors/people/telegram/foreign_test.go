package telegram_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/schemas"
)

// The carrier works with a Telegram test server from another project, installed by npm. That server
// enforces no limits, so the test confirms only the protocol.
func TestAgainstAnIndependentServer(t *testing.T) {
	t.Parallel()
	if os.Getenv("NOD_TELEGRAM_TEST_API") == "" {
		t.Skip("it needs npm and the network: NOD_TELEGRAM_TEST_API=1 go test ./connectors/people/telegram -run IndependentServer")
	}
	w := &world{require.New(t), nil, t, t.Context(), nil, newDesk(t)}
	base := serveForeign(t)
	var err error
	w.carrier, err = telegram.New(base, token, slog.New(slog.DiscardHandler))
	w.NoError(err)
	defer w.run()()

	ref, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
	w.NoError(err)
	w.NoError(w.carrier.Revise(w.ctx, ref, w.desk.prompt))
	var seen struct {
		Result []struct {
			MessageID int64          `json:"messageId"`
			Message   map[string]any `json:"message"`
		} `json:"result"`
	}
	post(t, base+"/getUpdates", map[string]any{"token": token, "chatId": peopletest.Ann}, &seen)
	w.Len(seen.Result, 1)
	text, markup := seen.Result[0].Message["text"], seen.Result[0].Message["reply_markup"]
	w.Contains(text, "│ make")
	data := markup.(map[string]any)["inline_keyboard"].([]any)[0].([]any)[0].(map[string]any)["callback_data"]

	person := map[string]any{"id": ann, "is_bot": false, "first_name": "Ann"}
	post(t, base+"/sendCallback", map[string]any{
		"botToken": token, "from": person, "data": data,
		"message": map[string]any{"message_id": seen.Result[0].MessageID, "chat": map[string]any{"id": ann, "type": "private"}, "text": text},
	}, nil)
	select {
	case a := <-w.desk.answers:
		w.Equal("allow_once", a.OptionID)
		w.Equal(peopletest.Ann, a.From.UserID)
	case <-time.After(time.Minute):
		t.Fatal("no answer came")
	}
	history := func() string {
		post(t, base+"/getUpdatesHistory", map[string]any{"token": token}, &seen)
		return fmt.Sprint(seen.Result)
	}
	w.waits(func() bool { return strings.Contains(history(), "Allowed once · Ann") })
	ended := w.desk.prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.Withdrawn}
	w.NoError(w.carrier.Settle(w.ctx, ref, ended))
	w.Contains(history(), "Withdrawn: the agent stopped waiting")
}

// serveForeign installs another project's test server from npm, starts it, and returns its address.
func serveForeign(t *testing.T) (base string) {
	dir := peopletest.Packages(t, "telegram-test-api@4.2.1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	script := filepath.Join(dir, "serve.js")
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil,
		"const t = require('telegram-test-api'); new (t.TelegramServer || t.default || t)({host: '127.0.0.1', port: %d}).start()", port), 0o600))
	node := exec.Command("node", script)
	node.Stderr = os.Stderr
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = node.Process.Kill() // Kill fails if the process has already ended
		_ = node.Wait()
	})
	base = fmt.Sprintf("http://127.0.0.1:%d", port)
	require.Eventually(t, func() bool {
		resp, err := http.Get(base)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)
	return base
}

func post(t *testing.T, url string, body, reply any) {
	data, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	if reply != nil {
		require.NoError(t, json.Unmarshal(data, reply), string(data))
	}
}
