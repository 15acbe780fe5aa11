package schemas

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every message has a writer, except for messages with settings.
func TestWritersEncodeEveryMessage(t *testing.T) {
	for _, m := range Messages() {
		if m.Type != TypeSettingsState {
			assert.NotNil(t, writerOf(reflect.TypeOf(m.New()).Elem()), m.Type)
		}
	}
	for file, data := range goldens(t) {
		v := emptyNoun(t, file)
		require.NoError(t, Decode(data, v))
		sameAsJSON(t, v)
	}
	for _, m := range Messages() {
		sameAsJSON(t, m.New())
	}
}

// sameAsJSON fails the test if a writer and encoding/json encode v differently.
func sameAsJSON(t testing.TB, v any) {
	t.Helper()
	got, ok := encode(reflect.ValueOf(v))
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if ok {
		require.NoError(t, err)
		require.Equal(t, string(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), string(got))
	}
}

func TestWritersWriteTextsAndInputsLikeEncodingJSON(t *testing.T) {
	texts := []string{"a", `"`, `\`, "\b\f\n\r\t", "\x00\x1f\x7f", "<&>", "é", "\u2028\u2029", "\xff", "\xed\xa0\x80", "\U0001F600", "\ufffd"}
	inputs := []string{`{}`, `{ "a" : 1 }`, `{"a":[1,-0.5e3,{"b":null}]}`, `{"a":"\u00e9\ud800"}`, `{"a":1,"a":2}`, `{`, ``, `null`, `1 `, "{\"a\":\"\xff\"}", `{"a":01}`, `{"<":"\u2028"}`}
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		text := func() (s string) {
			for range random.IntN(4) {
				s += texts[random.IntN(len(texts))]
			}
			return s
		}
		d := Decision{
			Type: text(), Message: text(), Outcome: Outcome(text()), UpdatedInput: json.RawMessage(inputs[random.IntN(len(inputs))]),
			SettingsRevision: random.Uint64(), DecidedAt: time.Unix(random.Int64N(1<<38), random.Int64N(1e9)).UTC(),
		}
		if random.IntN(2) == 0 {
			d.Grant = &StandingAnswer{GrantID: text(), Rules: []RememberedRule{{Tool: text(), Argv: []string{text()}}, {}}, Permissions: []string{}}
		}
		sameAsJSON(t, &d)
		sameAsJSON(t, Record{Type: text(), Decision: &d, Request: d.UpdatedInput, Routes: []Route{}, Waiters: []Waiter{{Place: -3, Decision: &d}}})
	}
	sameAsJSON(t, Decision{DecidedAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)})
	sameAsJSON(t, Decision{DecidedAt: time.Now()})
	sameAsJSON(t, StandingAnswer{ExpiresAt: time.Time{}.In(time.FixedZone("", 3600))})
}

func BenchmarkEncodeRecord(b *testing.B) {
	var r Record
	require.NoError(b, Decode(golden(b, "record"), &r))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(r); err != nil {
			b.Fatal(err)
		}
	}
}
