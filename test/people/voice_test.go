package people

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/voice"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

const voiceToken = "the-token-of-anns-client"

// house is a machine with nod. Its approver Ann has a voice client and further identities.
type house struct {
	*rig.Machine
	address string
}

func newHouse(t *testing.T, others, connectors string) *house {
	h := &house{Machine: rig.NewMachine(t), address: fmt.Sprintf("127.0.0.1:%d", testports.Free(t, 1)[0])}
	require.NoError(t, os.MkdirAll(filepath.Join(h.Dir, "voice"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(h.Dir, "voice", "token"), []byte(voiceToken), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(h.Dir, "settings.json"), []byte(fmt.Sprintf(`{
		"approvers": {"people": [{"name": "Ann", "identities": [{"connector": "voice", "user_id": %q}%s]}]},
		"connectors": {"voice": {"listen": %q, "words_per_minute": 400, "echo_margin_ms": 500}%s}}`, voice.UserID(voiceToken), others, h.address, connectors)), 0o600))
	return h
}

type speaker struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser

	mu    sync.Mutex
	lines []string
	ended chan struct{} // a Go channel that is closed when the process ends its output
}

func (h *house) listens(args ...string) *speaker {
	s := &speaker{t: h.T, cmd: h.Command(append([]string{"voice", "--url", "http://" + h.address}, args...)...), ended: make(chan struct{})}
	var err error
	s.in, err = s.cmd.StdinPipe()
	require.NoError(h.T, err)
	out, err := s.cmd.StdoutPipe()
	require.NoError(h.T, err)
	require.NoError(h.T, s.cmd.Start())
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.mu.Lock()
			s.lines = append(s.lines, lines.Text())
			s.mu.Unlock()
		}
	}()
	h.T.Cleanup(s.kill)
	return s
}

// kill kills the process, so that the client does not log out.
func (s *speaker) kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
	_ = s.cmd.Wait()
}

func (s *speaker) heard(part string) bool { return s.count(part) > 0 }

func (s *speaker) count(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(strings.Join(s.lines, "\n"), part)
}

func (s *speaker) hears(part string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.heard(part) }, time.Minute, rig.Tick, part)
}

// The method says speaks a text again and again until the client has said the text part, because the client
// ignores words during and shortly after its own speech.
func (s *speaker) says(text, part string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_, err := fmt.Fprintln(s.in, text)
		return err == nil && s.heard(part)
	}, time.Minute, 300*time.Millisecond, part)
}

// withTelephone makes a house whose approver also has a phone.
func withTelephone(t *testing.T) (*house, *phone) {
	p := newPhone(t, `"token_file": "DIR/token"`)
	h := newHouse(t, fmt.Sprintf(`, {"connector": "telegram", "user_id": "%d"}`, annOnTG),
		fmt.Sprintf(`, "telegram": {"base_url": %q, "token_file": %q}`, p.URL(), filepath.Join(p.Dir, "token")))
	p.Machine = h.Machine
	h.StartNod()
	return h, p
}

// After a restart of a killed client, nod asks the client's person again. The person allows the request
// after nod has read it back.
func TestAnswersByVoice(t *testing.T) {
	t.Parallel()
	h, p := withTelephone(t)
	first := h.listens()
	open := p.asks("spoken-1")
	p.question("spoken-1")
	first.hears("Say yes or no.")
	first.kill()
	second := h.listens()
	second.hears("Say yes or no.")
	second.says("yes", "You said yes to")
	second.says("confirm", "It is allowed")
	require.Equal(t, schemas.Allowed, p.hears(open).Outcome)
}

// Words that a person speaks after a decision on another channel decide nothing.
func TestLateSpeechDecidesNothing(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnswersByVoice answers in time, and connectors/people/voice tests late speech")
	h, p := withTelephone(t)
	client := h.listens()
	open := p.asks("spoken-2")
	m := p.question("spoken-2")
	client.hears("Say yes or no.")
	p.press(m, "Deny")
	require.Equal(t, schemas.Denied, p.hears(open).Outcome)
	client.hears("Ann denied this")
	client.says("yes", "Nothing waits for you")
	h.Shown("spoken-2", func(p schemas.Prompt) bool { return p.Decision != nil && p.Decision.Outcome == schemas.Denied })
}

// If only voice reaches an approver, a request waits 300 s, or for the time in NOD_PERMISSION_TIMEOUT.
// Other requests keep their deadlines, even while a voice client is open. A client with the input lock of
// a session sets the deadlines of the session's requests until the client ends.
func TestTheDeadlineOfVoice(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnswersByVoice answers before it")
	for name, c := range map[string]struct {
		others  string
		timeout string
		tier    schemas.Tier
		want    time.Duration
	}{
		"only voice":           {"", "", schemas.TierVoice, 300 * time.Second},
		"only voice, variable": {"", "NOD_PERMISSION_TIMEOUT=45", schemas.TierVoice, 45 * time.Second},
		"the older variable":   {"", "PERMISSION_TIMEOUT=50", schemas.TierVoice, 50 * time.Second},
		"the terminal too":     {`, {"connector": "terminal", "user_id": "ann"}`, "", schemas.TierDisconnected, 7 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, c.others, "")
			if key, value, ok := strings.Cut(c.timeout, "="); ok {
				h.Env = append(h.Env, key+"="+value)
			}
			h.StartNod()
			client := h.listens("--session", "held")
			r := h.Asked(t, "q-1", "--session", "s", "--tool", "Frobnicate", "--input", `{"n":1}`)
			require.Equal(t, c.tier, r.Tier)
			require.WithinDuration(t, time.Now().Add(c.want), r.Deadline, 20*time.Second)
			client.hears("frobnicate")
			n := 1
			require.Eventually(t, func() bool {
				n++
				held := h.Asked(t, fmt.Sprint("q-", n), "--session", "held", "--tool", "Frobnicate", "--input", fmt.Sprintf(`{"n":%d}`, n))
				return held.Tier == schemas.TierVoice
			}, time.Minute, rig.Tick)
		})
	}
}

// nod pair prints a command that starts a voice client with a code. The client sends the code and its
// own token, and from then on this token identifies the person.
func TestPairingAVoiceClient(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestPairingATelephone pairs one on Telegram")
	h := newHouse(t, `, {"connector": "terminal", "user_id": "ann"}`, "")
	h.StartNod()
	token := filepath.Join(h.Dir, "other-token")
	client := []string{"voice", "--url", "http://" + h.address, "--token-file", token}
	_, stderr, code := h.Run(client...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "run nod pair voice")
	_, stderr, code = h.Run(append(client, "--pair", "WRONGCODE")...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no pairing waits for that code")

	pair := h.Command("pair", "voice", "--name", "Bob", "--yes")
	out, err := pair.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, pair.Start())
	t.Cleanup(func() { _ = pair.Process.Kill() })
	shown := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		shown += lines.Text() + "\n"
		if m := regexp.MustCompile(`nod voice --pair (\w+)`).FindStringSubmatch(lines.Text()); m != nil {
			stdout, stderr, code := h.Run(append(client, "--pair", m[1])...)
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, "The code is right")
		}
	}
	require.NoError(t, pair.Wait(), shown)
	require.Contains(t, shown, "Bob may answer on voice now.")
	secret, err := os.ReadFile(token)
	require.NoError(t, err)
	settings, err := os.ReadFile(filepath.Join(h.Dir, "settings.json"))
	require.NoError(t, err)
	require.Contains(t, string(settings), voice.UserID(strings.TrimSpace(string(secret))))
	require.NotContains(t, string(settings), strings.TrimSpace(string(secret)))
	bob := h.listens("--token-file", token)
	h.Asked(t, "q-1", "--session", "s", "--tool", "Frobnicate", "--input", `{"n":1}`)
	bob.says("no", "It is denied")
}

// The voice API needs an approver's token, and takes calls only from its own host and origin. Over plain
// HTTP, a client polls for the words to speak and posts transcripts.
func TestVoiceOverHTTP(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnswersByVoice answers by the same messages")
	h := newHouse(t, "", "")
	h.StartNod()
	call := func(method, path, body, token string, change func(*http.Request)) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.address+path, strings.NewReader(body))
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if change != nil {
			change(req)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(data)
	}
	for _, path := range []string{"/v1/ws", "/v1/speech", "/v1/transcripts"} {
		method := map[string]string{"/v1/transcripts": "POST"}[path]
		for token, want := range map[string]int{"": 401, "short": 401, "a-token-of-nobody-at-all": 403} {
			code, _ := call(method, path, `{"text":"yes","final":true}`, token, nil)
			require.Equal(t, want, code, "%s %q", path, token)
		}
		code, _ := call(method, path, "", voiceToken, func(r *http.Request) { r.Host = "evil.example" })
		require.Equal(t, 421, code)
		code, _ = call(method, path, "", voiceToken, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
		require.Equal(t, 403, code)
		code, _ = call(method, path+"?token="+voiceToken, "", "", nil)
		require.Equal(t, 401, code)
	}
	code, text := call("POST", "/v1/transcripts", `{"text":"no","final":true}`, voiceToken, nil)
	require.Equal(t, 409, code, text)

	h.Asked(t, "q-1", "--session", "s", "--tool", "Frobnicate", "--input", `{"n":1}`)
	after := 0
	speech := func() (all []voice.Line) {
		code, text := call("GET", fmt.Sprint("/v1/speech?after=", after), "", voiceToken, nil)
		require.Equal(t, 200, code, text)
		var body struct{ Speech []voice.Line }
		require.NoError(t, json.Unmarshal([]byte(text), &body))
		for _, l := range body.Speech {
			after = l.Seq
		}
		return body.Speech
	}
	lines := speech()
	require.NotEmpty(t, lines)
	require.Equal(t, "q-1", lines[0].PendingID)
	for _, partial := range []string{`{"text":"no"}`, `{"text":"no","final":false}`, `{"text":"no","final":true,"ended_ms_ago":59000}`, `{"text":"no","final":true,"pending_id":"q-0"}`} {
		code, _ := call("POST", "/v1/transcripts", partial, voiceToken, nil)
		require.Equal(t, 200, code)
	}
	h.Shown("q-1", func(p schemas.Prompt) bool { return p.Decision == nil })
	require.Eventually(t, func() bool {
		_, _ = call("POST", "/v1/transcripts", `{"text":"no","final":true}`, voiceToken, nil)
		_, _ = call("GET", "/v1/speech?after=0", "", voiceToken, nil)
		stdout, _, _ := h.Run("show", "q-1", "--json")
		return strings.Contains(stdout, `"denied"`)
	}, time.Minute, 300*time.Millisecond)
}
