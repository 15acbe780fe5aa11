package schemas

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecodeReadsAllFieldsOfARequest(t *testing.T) {
	var r Request
	require.NoError(t, Decode(golden(t, "request"), &r))
	assert.Equal(t, "session-abc.perm-123", r.Key())
	assert.Equal(t, KindToolCall, r.Kind)
	assert.JSONEq(t, `{"command":"rm -rf .","cwd":"/workspace"}`, string(r.ActionDetails))
	assert.Equal(t, DefaultOptions(), r.Options)
}

func TestDecodeClearsEarlierFields(t *testing.T) {
	a := Answer{OptionID: "allow_once", Message: "yes"}
	require.NoError(t, Decode(golden(t, "answer-cancelled"), &a))
	assert.Empty(t, a.OptionID)
	assert.Empty(t, a.Message)
}

func TestDecodeRefusesTypesThatAreNoMessages(t *testing.T) {
	for _, v := range []any{nil, Request{}, (*Request)(nil), new(string), new(Option), new(map[string]any)} {
		err := Decode([]byte(`{}`), v)
		assert.ErrorIs(t, err, &Error{Code: CodeInternal}, "%T", v)
	}
}

func TestDecodeRefusesInvalidUTF8(t *testing.T) {
	for _, fault := range []string{"\xff", "\xed\xa0\x80", "\xc0\x80", "\xe2\x82"} {
		data := strings.Replace(string(golden(t, "request")), "rm -rf .", fault, 1)
		err := Decode([]byte(data), new(Request))
		assert.EqualError(t, err, "request is not valid UTF-8", "%q", fault)
		assert.ErrorIs(t, err, &Error{Code: CodeValidation})
	}
}

func TestDecodeRefusesEveryTruncation(t *testing.T) {
	for file, data := range goldens(t) {
		whole := strings.TrimRight(string(data), "\n")
		for n := range len(whole) {
			err := Decode([]byte(whole[:n]), emptyNoun(t, file))
			assert.ErrorIs(t, err, &Error{Code: CodeValidation}, "%s cut at %d", file, n)
		}
	}
}

func TestDecodeSizes(t *testing.T) {
	request := func(n int) string {
		const frame = `{"type":"nod.v1.request","pending_id":"p","session_id":"s","kind":"question","title":"t",` +
			`"action_type":"other","action_details":{"a":""},"created_at":"2026-01-18T00:00:00Z"}`
		return strings.Replace(frame, `"a":""`, `"a":"`+strings.Repeat("<", n-len(frame))+`"`, 1)
	}
	answer := func(message string, input int) string {
		return fmt.Sprintf(`{"type":"nod.v1.answer","session_id":"s","pending_id":"p","digest":%q,"option_id":"o",`+
			`"message":"%s","updated_input":{"a":"%s"},"from":{"user_id":"u"}}`,
			strings.Repeat("0", 64), message, strings.Repeat("<", input-len(`{"a":""}`)))
	}
	awaits := func(n int) string {
		item := `{"session_id":"s","pending_id":"p"},`
		return `{"type":"nod.v1.await","requests":[` + strings.TrimSuffix(strings.Repeat(item, n), ",") + `]}`
	}
	for _, c := range []struct {
		name, data string
		v          any
		want       string
	}{
		{"the longest request", request(MaxRequestBytes), new(Request), ""},
		{"a longer one", request(MaxRequestBytes + 1), new(Request), "request: is 262145 bytes long; the most is 262144"},
		{"the longest answer", answer("yes", MaxAnswerBytes-len(`"yes"`)), new(Answer), ""},
		{"a longer one", answer("yes!", MaxAnswerBytes-len(`"yes"`)), new(Answer),
			"updated_input: and message are 262145 bytes together; the most is 262144"},
		{"a message that escapes to six times its length", answer(strings.Repeat(`\u0001`, MaxAnswerBytes/6), 8), new(Answer),
			"updated_input: and message are 262150 bytes together; the most is 262144"},
		{"the most awaited", awaits(MaxAwaited), new(Await), ""},
		{"one more", awaits(MaxAwaited + 1), new(Await), "requests: has 501 entries; the most is 500"},
		{"the longest settings", `{"permissions":{},"approvers":{"people":[]}` + strings.Repeat(" ", MaxSettingsBytes-44) + "}", new(Settings), ""},
		{"longer ones", `{"permissions":{},"approvers":{"people":[]}` + strings.Repeat(" ", MaxSettingsBytes-43) + "}", new(Settings),
			"settings.json: is 262145 bytes long; the most is 262144"},
	} {
		err := Decode([]byte(c.data), c.v)
		if c.want == "" {
			assert.NoError(t, err, c.name)
			continue
		}
		assert.EqualError(t, err, c.want, c.name)
		assert.ErrorIs(t, err, &Error{Code: CodeValidation}, c.name)
	}
}

// A request at its limits must fit into the record, the prompt and the page that contain it.
// Otherwise nod could store a request and then never be able to decide it.
func TestARequestAtItsLimitsFitsEveryMessage(t *testing.T) {
	const around = len(`{"a":}`)
	deep := strings.Repeat("[", MaxDepth-2) + strings.Repeat("]", MaxDepth-2)
	filler := strings.Repeat("<", MaxRequestBytes-len(deep)-around-2000)
	data := fmt.Sprintf(`{"type":"nod.v1.request","pending_id":"p","session_id":"s","kind":"question","title":"t",`+
		`"action_type":"other","action_details":{"a":%s,"b":"%s"},"created_at":"2026-01-18T00:00:00Z"}`, deep, filler)
	var r Request
	require.NoError(t, Decode([]byte(data), &r))
	digest, err := Digest(&r)
	require.NoError(t, err)

	var d Decision
	require.NoError(t, Decode(golden(t, "decision"), &d))
	d.UpdatedInput = r.ActionDetails
	record := Record{Type: TypeRecord, Agent: "a", Request: []byte(data), Digest: digest, Tier: TierSession, Risk: RiskLow, Decision: &d}
	encoded, err := Encode(record)
	require.NoError(t, err)
	assert.Less(t, len(encoded), MaxPayloadBytes)
	assert.NoError(t, Decode(encoded, new(Record)))

	prompt := Prompt{Type: TypePrompt, SessionID: "s", PendingID: "p", Agent: "a", Request: r, Digest: digest,
		Risk: RiskLow, Tier: TierSession, Decision: &d}
	encoded, err = Encode(Page{Type: TypePage, Prompts: []Prompt{prompt}})
	require.NoError(t, err)
	assert.Less(t, len(encoded), MaxPayloadBytes)
	assert.NoError(t, Decode(encoded, new(Page)))
}

func TestNumbers(t *testing.T) {
	kept := []string{"0", "-0", "-0.0", "0e99999999999999999999", "1", "1.0", "1.50", "10e-1", "1E2", "1e+2", "0.1", "123.456", "1e21", "1e-7",
		"5e-324", "1.7976931348623157e308", "-2.2250738585072014E-308", "9007199254740992", "-9007199254740992",
		"9007199254740991.0", "0.30000000000000000", "0.30000000000000004", "1e15", "100000000000000000000e-5", "0.000000000000000000001"}
	changed := []string{"9007199254740993", "-9007199254740993", "9007199254740994", "18446744073709551616", "1" + strings.Repeat("0", 400),
		"1e309", "-1e309", "1e-400", "4e-324", "1e99999999999999999999", "1e-99999999999999999999", "0.1000000000000000055",
		"3.14159265358979323846", "9007199254740993.0", "1.00000000000000001"}
	decode := func(number string) error {
		data := strings.Replace(string(golden(t, "request")), `"rm -rf ."`, "[{\"n\":"+number+"}]", 1)
		return Decode([]byte(data), new(Request))
	}
	for _, number := range kept {
		assert.NoError(t, decode(number), number)
	}
	for _, number := range changed {
		err := decode(number)
		require.Error(t, err, number)
		assert.Contains(t, err.Error(), "action_details.command[0].n: is a", number)
		assert.ErrorIs(t, err, &Error{Code: CodeValidation})
	}
}

func TestStringsAreReadAsWritten(t *testing.T) {
	details := `{"a\"\\\/\b\f\n\r\tb":"\ud83d\ude00\u0000","":"\\ud800","é":"\"","x":"\\\\","y":[ "" , { } , [ ] ],"z":"\uD83D\uDE00"}`
	data := strings.Replace(string(golden(t, "request")), `{"command":"rm -rf .","cwd":"/workspace"}`, details, 1)
	var r Request
	require.NoError(t, Decode([]byte(data), &r))
	assert.Equal(t, details, string(r.ActionDetails))
}

func TestValidIDMatchesTheSchemas(t *testing.T) {
	pattern := regexp.MustCompile(idPattern)
	ids := []string{"", "a", "A-b_9", "a.b", "a b", "a\n", "é", "*", ">", strings.Repeat("x", 128), strings.Repeat("x", 129)}
	for c := range 256 {
		ids = append(ids, string([]byte{byte(c)}))
	}
	for _, id := range ids {
		assert.Equal(t, pattern.MatchString(id), ValidID(id), "%q", id)
	}
}

// Decode must be safe for concurrent use, although schemas share definitions and are compiled at their
// first use.
func TestDecodeFromManyGoroutinesAtOnce(t *testing.T) {
	all := loadNouns() // these nouns are new, so their schemas are not compiled yet
	var wg sync.WaitGroup
	for file, data := range goldens(t) {
		for range 4 {
			v := emptyNoun(t, file)
			wg.Go(func() { assert.NoError(t, all[reflect.TypeOf(v)].decode(data, v)) })
		}
	}
	wg.Wait()
}

// If Decode accepts a message, Encode and a second Decode return the same message, and the digest of
// a request stays the same.
func FuzzDecode(f *testing.F) {
	kinds := Messages()
	for file, data := range goldens(f) {
		for i, m := range kinds {
			if reflect.TypeOf(m.New()) == reflect.TypeOf(emptyNoun(f, file)) {
				f.Add(uint8(i), data)
			}
		}
	}
	for name := range refusals {
		data, err := os.ReadFile("v1/golden/invalid/" + name + ".json")
		require.NoError(f, err)
		f.Add(uint8(0), data)
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		m := kinds[int(which)%len(kinds)]
		first := m.New()
		if err := Decode(data, first); err != nil {
			assert.NotContains(t, err.Error(), "\n")
			assert.True(t, reflect.ValueOf(first).Elem().IsZero())
			return
		}
		encoded, err := Encode(first)
		require.NoError(t, err)
		second := m.New()
		require.NoError(t, Decode(encoded, second), "%s", encoded)
		again, err := Encode(second)
		require.NoError(t, err)
		require.Equal(t, string(encoded), string(again))
		if r, ok := first.(*Request); ok {
			one, err := Digest(r)
			require.NoError(t, err)
			two, err := Digest(second.(*Request))
			require.NoError(t, err)
			require.Equal(t, one, two)
		}
	})
}

func BenchmarkDecodeRequest(b *testing.B) {
	data := golden(b, "request")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var r Request
		if err := Decode(data, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeDecision(b *testing.B) {
	data := golden(b, "decision")
	b.ReportAllocs()
	for b.Loop() {
		var d Decision
		if err := Decode(data, &d); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstDecode measures how long the first Decode of a process takes.
func BenchmarkFirstDecode(b *testing.B) {
	data := golden(b, "decision")
	for b.Loop() {
		var d Decision
		if err := loadNouns()[reflect.TypeOf(&d)].decode(data, &d); err != nil {
			b.Fatal(err)
		}
	}
}
