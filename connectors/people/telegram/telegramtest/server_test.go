package telegramtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
)

// The reply to a send contains the original text, even if the message is edited before the reply
// arrives.
func TestASendReturnsTheMessageAsItWasSent(t *testing.T) {
	s := telegramtest.New("777:token")
	defer s.Close()
	s.Start(1)
	s.Latency(200 * time.Millisecond)
	sent, edited := make(chan string, 1), make(chan string, 1)
	call := func(method, fields string, text chan<- string) {
		body := `{"chat_id": 1, "link_preview_options": {"is_disabled": true}, ` + fields + `}`
		resp, err := http.Post(s.URL()+"/bot777:token/"+method, "application/json", strings.NewReader(body))
		if err != nil {
			text <- err.Error()
			return
		}
		defer resp.Body.Close()
		var reply struct {
			Result struct{ Text string } `json:"result"`
		}
		err = json.NewDecoder(resp.Body).Decode(&reply)
		text <- fmt.Sprint(reply.Result.Text, err)
	}
	go call("sendMessage", `"text": "first"`, sent)
	require.Eventually(t, func() bool { return len(s.Chat(1)) == 1 }, 30*time.Second, time.Millisecond)
	go call("editMessageText", fmt.Sprintf(`"text": "second", "message_id": %d`, s.Chat(1)[0].ID), edited)
	require.Equal(t, "first<nil>", <-sent)
	require.Equal(t, "second<nil>", <-edited)
	require.Empty(t, s.Rejected())
}
