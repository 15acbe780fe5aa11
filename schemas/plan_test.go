package schemas

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The plans of each message decode the message's golden file. Messages with settings are an
// exception, because this package has no struct for the settings of channels.
func TestPlansDecodeEveryMessage(t *testing.T) {
	for _, m := range Messages() {
		if m.Type == TypeSettingsState {
			continue
		}
		n := nouns()[reflect.TypeOf(m.New())]
		assert.NotNil(t, n.strict(), "%s: the plan for Decode", m.Type)
		assert.NotNil(t, n.loose(), "%s: the plan for Load", m.Type)
	}
	missed := map[string]bool{}
	for file, data := range goldens(t) {
		v := emptyNoun(t, file)
		n := nouns()[reflect.TypeOf(v)]
		if !n.strict().fill(data, v, n.maxDepth) {
			missed[filepath.Base(file)] = true
			continue
		}
		agree(t, data, reflect.TypeOf(v))
	}
	assert.Equal(t, notPlanned, missed, "golden files that need the full check")
}

var notPlanned = map[string]bool{"settings.json": true, "settings_state.json": true}

// agree asserts that the full check accepts data if a plan accepts it, and that both give the same
// result.
func agree(t testing.TB, data []byte, message reflect.Type) {
	t.Helper()
	n := nouns()[message]
	if v := reflect.New(message.Elem()).Interface(); n.strict().fill(data, v, n.maxDepth) {
		full := reflect.New(message.Elem()).Interface()
		require.NoError(t, n.checkFully(data, full), "%s", data)
		require.Equal(t, full, v, "%s", data)
	}
	if v := reflect.New(message.Elem()).Interface(); n.loose().fill(data, v, 0) {
		full := reflect.New(message.Elem()).Interface()
		require.NoError(t, json.Unmarshal(data, full), "%s", data)
		require.Equal(t, full, v, "%s", data)
	}
}

// Plans and the full check agree about golden files, invalid files, and random changes of both. A
// change removes, repeats, exchanges or replaces parts of a file.
func TestPlansAgreeWithTheFullCheckAboutChangedMessages(t *testing.T) {
	invalid, err := filepath.Glob("v1/golden/invalid/*.json")
	require.NoError(t, err)
	files := goldens(t)
	for _, file := range invalid {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		files[file] = data
	}
	parts := []string{`null`, `""`, `0`, `-1`, `1.0`, `1e2`, `true`, `[]`, `{}`, `[null]`, `{"a":1,"a":2}`, `"\ud800"`, `"é"`, `"x\ny"`, `9007199254740993`,
		`"2026-01-18T00:00:00Z"`, `"2026-01-18"`, ` `, `,`, `:`, `{`, `}`, `[`, `]`, `"`, `\`, `"allowed"`, "\x00", "\xff", `0.1`, `00.5`, `01`, `-0`, `1.`, `1e`, `0e+1`, `-`, `1E-7`, `12345678901234567890`, `"h\u0000"`, `"type"`, `"Type":`, `"new":1,`}
	random := rand.New(rand.NewPCG(3, 4))
	for _, file := range slices.Sorted(maps.Keys(files)) {
		message := reflect.TypeOf(emptyNoun(t, file))
		agree(t, files[file], message)
		for range 300 {
			agree(t, change(random, files[file], parts), message)
		}
	}
}

func change(random *rand.Rand, data []byte, parts []string) []byte {
	data = slices.Clone(data)
	tokens := func() (from, to int) { // returns the ends of a random part of the data
		from = random.IntN(len(data))
		return from, min(len(data), from+random.IntN(24))
	}
	for range 1 + random.IntN(3) {
		if len(data) == 0 {
			return data
		}
		from, to := tokens()
		switch random.IntN(4) {
		case 0:
			data = slices.Delete(data, from, to)
		case 1:
			data = slices.Insert(data, from, []byte(parts[random.IntN(len(parts))])...)
		case 2:
			data = slices.Replace(data, from, to, []byte(parts[random.IntN(len(parts))])...)
		default: // replaces a value by another value
			starts := valueStarts(data)
			if len(starts) == 0 {
				continue
			}
			at := starts[random.IntN(len(starts))]
			data = slices.Replace(data, at, valueEnd(data, at), []byte(parts[random.IntN(len(parts))])...)
		}
	}
	return data
}

// valueStarts returns the offsets at which values may start, which follow a colon, a comma or a
// bracket.
func valueStarts(data []byte) (all []int) {
	for i, c := range data {
		if (c == ':' || c == ',' || c == '[') && i+1 < len(data) {
			at := i + 1
			for at < len(data)-1 && data[at] == ' ' {
				at++
			}
			all = append(all, at)
		}
	}
	return all
}

func valueEnd(data []byte, at int) int {
	d := json.NewDecoder(bytes.NewReader(data[at:]))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return min(len(data), at+1)
	}
	return at + int(d.InputOffset())
}

func FuzzPlansAgreeWithTheFullCheck(f *testing.F) {
	kinds := Messages()
	for file, data := range goldens(f) {
		for i, m := range kinds {
			if reflect.TypeOf(m.New()) == reflect.TypeOf(emptyNoun(f, file)) {
				f.Add(uint8(i), data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		agree(t, data, reflect.TypeOf(kinds[int(which)%len(kinds)].New()))
	})
}
