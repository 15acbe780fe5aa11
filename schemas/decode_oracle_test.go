package schemas

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/gowebpki/jcs"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// otherDecoder is a second implementation to compare with. It decodes messages with encoding/json and
// a complete implementation of JSON Schema, and without the package's plans, writers and validation.
type otherDecoder map[reflect.Type]*jsonschema.Schema

func newOtherDecoder(t testing.TB) otherDecoder {
	t.Helper()
	c, d := oracle(t), otherDecoder{}
	for message, n := range nouns() {
		name := n.label
		if name == "settings.json" {
			name = "settings"
		}
		s, err := c.Compile("nod:///v1/" + name + schemaSuffix)
		require.NoError(t, err)
		d[message] = s
	}
	return d
}

func (d otherDecoder) decode(n *noun, data []byte, v any) error {
	if n.maxBytes > 0 && len(data) > n.maxBytes {
		return invalid(n.label, "is too long")
	}
	unmarshalled := json.Unmarshal(data, v)
	if err := n.checkObject(data, unmarshalled); err != nil {
		return err
	}
	own, err := n.schema()
	if err != nil {
		return err
	}
	tree, err := parse(data, own, n.maxDepth)
	if err != nil {
		return err
	}
	if err := n.checkType(tree); err != nil {
		return err
	}
	if err := d[reflect.TypeOf(v)].Validate(tree); err != nil {
		return err
	}
	if unmarshalled != nil {
		return unmarshalled
	}
	if c, ok := v.(checker); ok {
		return c.check()
	}
	return nil
}

// agrees asserts that Decode, Load, Encode and Digest give the same results for data as otherDecoder.
func (d otherDecoder) agrees(t testing.TB, data []byte, message reflect.Type) {
	t.Helper()
	n := nouns()[message]
	fresh := func() any { return reflect.New(message.Elem()).Interface() }
	before := slices.Clone(data)

	got, want := fresh(), fresh()
	err, theirs := Decode(data, got), d.decode(n, data, want)
	require.Equal(t, before, data, "Decode changed its input")
	require.Equal(t, theirs == nil, err == nil, "%s\nthe other decoder: %v\nnod: %v", data, theirs, err)
	if err == nil {
		require.Equal(t, want, got, "%s", data)
		sameAsJSON(t, got)
		if r, ok := got.(*Request); ok {
			sameDigest(t, r)
		}
	}

	got, want = fresh(), fresh()
	loaded := n.loose().fill(data, got, 0)
	if loaded {
		require.NoError(t, json.Unmarshal(data, want), "%s", data)
		require.Equal(t, want, got, "%s", data)
		sameAsJSON(t, got)
	}
}

// sameDigest asserts that nod's digest of a request equals the digest that the RFC 8785 library
// gives.
func sameDigest(t testing.TB, r *Request) {
	t.Helper()
	details := r.ActionDetails
	if details == nil {
		return
	}
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, details))
	form, err := jcs.Transform(compact.Bytes())
	require.NoError(t, err)
	own, err := canon(compact.Bytes())
	require.NoError(t, err)
	require.Equal(t, string(form), string(own))
	digest, err := Digest(r)
	require.NoError(t, err)
	again := *r
	again.ActionDetails = form
	same, err := Digest(&again)
	require.NoError(t, err)
	require.Equal(t, same, digest, "%s", details)
}

var spellings = []string{`null`, `""`, `0`, `-0`, `-0.0`, `-1`, `1.0`, `1e2`, `1E+2`, `100e-2`, `1e400`, `1e-400`, `1e99999999999999999999`, `9007199254740992`, `9007199254740993`,
	`18446744073709551615`, `999999999999999`, `1000000000000000`, `0.1`, `01`, `1.`, `.5`, `+1`, `NaN`, `true`, `false`, `[]`, `{}`, `[null]`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
	`{"a":{"b":1,"b":1}}`, `{"a/":1,"a\/":2}`, `{"A":1,"a":2}`, `{"e":1e2,"f":1.0,"g":-0}`, `"\ud800"`, `"\ud83d\ude00"`, `"\udc00\ud800"`, `"\u0000"`, `"\u0041"`, `"\/"`, `"é"`, `"x\ny"`,
	"\"\x00\"", "\"\x7f\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\xef\xbb\xbf", "\"\u2028\"", `"2026-01-18T00:00:00Z"`, `"2026-01-18T00:00:00+24:00"`, `"2026-01-18t00:00:00z"`, `"2026-01-18T00:00:00,5Z"`, `"2026-02-30T00:00:00Z"`, `"0000-01-01T00:00:00Z"`,
	` `, "\n", "\f", "\u00a0", `,`, `:`, `{`, `}`, `[`, `]`, `"`, `\`, `"allowed"`, `"human"`, `"type":`, `"Type":`, `"ſession_id":`, `"type":"nod.v1.request",`, `"new":1,`, `"":0,`, `//`, `/**/`,
	`[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]`, `{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":[]}}}}}}}}`}

// restructured returns data with a random change: one member of an object is repeated, moved, or
// spelled in another way.
func restructured(random *rand.Rand, data []byte) []byte {
	data = change(random, data, spellings)
	names := nameSpans(data)
	if len(names) == 0 {
		return data
	}
	at := names[random.IntN(len(names))]
	name := slices.Clone(data[at[0]:at[1]]) // the name with its quotation marks, which has two bytes or more
	switch random.IntN(8) {
	case 0: // writes the name in upper case
		return slices.Replace(data, at[0], at[1], bytes.ToUpper(name)...)
	case 1: // writes the name with an escape
		return slices.Replace(data, at[0], at[1], bytes.Replace(name, []byte(`e`), []byte(`\u0065`), 1)...)
	case 2, 3: // adds a second member with this name, sometimes in another case
		if random.IntN(2) == 0 {
			name = slices.Concat(name[:1], bytes.ToUpper(name[1:2]), name[2:])
		}
		value := append(append(name, ':'), spellings[random.IntN(len(spellings))]...)
		return slices.Insert(data, at[0], append(value, ',')...)
	case 4: // replaces the name by the name of another member
		other := names[random.IntN(len(names))]
		return slices.Replace(data, at[0], at[1], slices.Clone(data[other[0]:other[1]])...)
	}
	return data
}

// nameSpans returns the positions of all texts before a colon.
func nameSpans(data []byte) (spans [][2]int) {
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(data) && data[end] != '"' {
			end++
		}
		if end >= len(data) {
			break
		}
		if rest := bytes.TrimLeft(data[end+1:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
			spans = append(spans, [2]int{i, end + 1})
		}
		i = end
	}
	return spans
}

func samples(t testing.TB) map[string][]byte {
	files := goldens(t)
	invalid, err := filepath.Glob("v1/golden/invalid/*.json")
	require.NoError(t, err)
	for _, file := range invalid {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		files[file] = data
	}
	return files
}

func FuzzMessagesAgreeWithOtherImplementations(f *testing.F) {
	other := newOtherDecoder(f)
	types := []reflect.Type{reflect.TypeFor[*Settings]()}
	for _, m := range Messages() {
		types = append(types, reflect.TypeOf(m.New()))
	}
	for file, data := range samples(f) {
		i := slices.Index(types, reflect.TypeOf(emptyNoun(f, file)))
		for seed := range uint64(3) {
			f.Add(uint8(i), seed, data)
		}
		var compact bytes.Buffer
		if json.Compact(&compact, data) == nil {
			f.Add(uint8(i), uint64(7), compact.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64, data []byte) {
		random := rand.New(rand.NewPCG(seed, 1))
		message := types[int(which)%len(types)]
		other.agrees(t, data, message)
		for range random.IntN(20) {
			other.agrees(t, restructured(random, data), message)
		}
	})
}
