package schemas

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// changed returns one message for each type that engines store, read and write again.
func changed() []any { return []any{new(Record), new(Grants), new(Session), new(FreezeState)} }

// Every struct in a stored message keeps the members of a later version. Such a struct must have a
// writer, because encoding/json would lose these members.
func TestEveryStoredStructKeepsLaterMembers(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch {
		case typ == timeType || typ == rawType:
		case typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice:
			walk(typ.Elem())
		case typ.Kind() == reflect.Map:
			t.Errorf("%s is in a stored message: a map keeps no later members", typ)
		case typ.Kind() == reflect.Struct && !seen[typ]:
			seen[typ] = true
			later, ok := typ.FieldByName("Later")
			assert.True(t, ok && later.Type == laterType, "%s needs the field Later", typ)
			assert.NotNil(t, writerOf(typ), "%s has no writer", typ)
			assert.NotNil(t, newPlan(typ, nil), "%s has no plan", typ)
			for i := range typ.NumField() {
				walk(typ.Field(i).Type)
			}
		}
	}
	for _, m := range changed() {
		walk(reflect.TypeOf(m))
	}
	assert.Greater(t, len(seen), 20)
}

// addMembers adds an unknown member to each object of a JSON value, and counts these members. It adds
// nothing to the agent's own request.
func addMembers(v any, n *int) {
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			if name != "request" && name != "updated_input" {
				addMembers(part, n)
			}
		}
		*n++
		v["of a \"later\" nod"] = map[string]any{"at most": float64(*n), "é<&": []any{true, nil}}
	case []any:
		for _, part := range v {
			addMembers(part, n)
		}
	}
}

// If this version reads a stored message of a later version and writes it again, the message stays as
// it is. The unknown members may be in any object, and may have any white space and escapes.
func TestLaterMembersAreKept(t *testing.T) {
	for _, m := range changed() {
		label := nouns()[reflect.TypeOf(m)].label
		t.Run(label, func(t *testing.T) {
			var tree map[string]any
			require.NoError(t, json.Unmarshal(golden(t, label), &tree))
			n := 0
			addMembers(tree, &n)
			require.NotZero(t, n)
			text, err := json.MarshalIndent(tree, "", "  ")
			require.NoError(t, err)

			require.NoError(t, Load(text, m))
			assert.True(t, HasLater(m))
			again, err := Encode(m)
			require.NoError(t, err)
			assert.JSONEq(t, string(text), string(again))

			require.NoError(t, Load(golden(t, label), m))
			assert.False(t, HasLater(m), "a message of this version")
		})
	}
}

// If an older engine replaces an object in a message, the unknown members of that object are lost.
// All other objects keep their unknown members.
func TestLaterMembersStayWithTheirObject(t *testing.T) {
	var rec Record
	require.NoError(t, Load(fmt.Appendf(nil, `{"type":"nod.v1.record","agent":"a","request":{},"digest":"d","tier":"request","risk":"low","deadline":"2026-01-02T03:04:05Z",
		"next_event":{"at":"2026-01-02T03:04:05Z","kind":"deadline","only":1},"routes":[],"votes":[],"waiters":[{"pending_id":"w","digest":"d","deadline":"2026-01-02T03:04:05Z","only":2}],"decision":null}`), &rec))
	rec.NextEvent = &Event{At: time.Unix(0, 0).UTC(), Kind: EventRelease}
	rec.Waiters = append(rec.Waiters, Waiter{PendingID: "v"})
	text, err := Encode(rec)
	require.NoError(t, err)
	assert.NotContains(t, string(text), `"only":1`)
	assert.Contains(t, string(text), `"pending_id":"w","digest":"d","deadline":"2026-01-02T03:04:05Z","only":2}`)
	assert.Equal(t, Later(""), rec.Waiters[1].Later)
}

// Unknown members that a client sends are not stored, because only Load keeps unknown members.
func TestDecodeKeepsNoUnknownMembers(t *testing.T) {
	var tree map[string]any
	require.NoError(t, json.Unmarshal(golden(t, "session"), &tree))
	n := 0
	addMembers(tree, &n)
	text, err := json.Marshal(tree)
	require.NoError(t, err)
	var s Session
	require.NoError(t, Decode(text, &s))
	assert.False(t, HasLater(&s))
}

// Nothing in an agent's own request can hide the unknown members of its record or make the record
// unreadable. The requests have many members, escaped names, repeated names, and deep nesting.
func TestLaterMembersBesideAnyRequest(t *testing.T) {
	many := []string{}
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"\u0061%d\"" : -1.5e3`, i))
	}
	for name, request := range map[string]string{
		"many members": "{" + strings.Join(many, ",") + "}", "twice": `{"a":[1,{}],"a":[]}`,
		"deep": strings.Repeat(`{"a":[`, 300) + strings.Repeat("]}", 300), "blanks": " {\n\t} ",
	} {
		text := fmt.Appendf(nil, `{"type":"nod.v1.record","agent":"\"","request":%s,"only":[ true , "x" ],"digest":"d","routes":[],"votes":null,"decision":null}`, request)
		var rec Record
		require.NoError(t, Load(text, &rec), name)
		assert.Equal(t, Later(`"only":[true,"x"]`), rec.Later, name)
		again, err := Encode(&rec)
		require.NoError(t, err, name)
		assert.JSONEq(t, `[true,"x"]`, string(memberOf(t, again, "only")), name)
	}
}

func memberOf(t *testing.T, object []byte, name string) json.RawMessage {
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &all))
	return all[name]
}
