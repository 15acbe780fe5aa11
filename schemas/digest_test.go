package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func digestOf(t testing.TB, data string) string {
	t.Helper()
	var r Request
	require.NoError(t, Decode([]byte(data), &r))
	digest, err := Digest(&r)
	require.NoError(t, err)
	return digest
}

// withDetails returns a small request whose canonical form the tests write out by hand.
func withDetails(details string) string {
	return `{"type":"nod.v1.request","pending_id":"p","session_id":"s","kind":"question","title":"t",` +
		`"action_type":"other","action_details":` + details + `,"created_at":"2026-01-18T00:00:00Z"}`
}

func sum(canonical string) string {
	s := sha256.Sum256([]byte(canonical))
	return hex.EncodeToString(s[:])
}

func TestDigestOfTheSampleRequest(t *testing.T) {
	want := sum(`{"action_details":{"command":"rm -rf .","cwd":"/workspace"},"action_type":"command","kind":"tool_call",` +
		`"options":[{"kind":"allow_once","name":"Allow once","option_id":"allow_once"},` +
		`{"kind":"reject_once","name":"Reject","option_id":"reject_once"}],` +
		`"pending_id":"perm-123","reason":"clean rebuild","session_id":"session-abc",` +
		`"title":"Command Execution Approval","tool_name":"Bash"}`)
	assert.Equal(t, want, digestOf(t, string(golden(t, "request"))))
	assert.Equal(t, "2ef8853106f4d107e0cb35bd52b824fcd3814912630e509ca290feb0fd91bd75", want,
		"a digest that is stored must stay what it is")
}

// Two spellings of action_details with the same RFC 8785 form give the same digest.
func TestDigestIsOverTheCanonicalForm(t *testing.T) {
	for name, c := range map[string]struct{ details, canonical string }{
		"key order":             {`{"b":1,"a":2,"A":3}`, `{"A":3,"a":2,"b":1}`},
		"key order inside":      {`{"x":[{"b":1,"a":2}]}`, `{"x":[{"a":2,"b":1}]}`},
		"keys by UTF-16 unit":   {`{"\ufb33":1,"\ud83d\ude00":2,"\u00e9":3,"1":4}`, "{\"1\":4,\"\u00e9\":3,\"\U0001f600\":2,\"\ufb33\":1}"},
		"white space":           {" {\n\t\"a\" : [ 1 , 2 ] }\r\n", `{"a":[1,2]}`},
		"integers as floats":    {`{"n":[1.0,1e0,10e-1,1,100E-2]}`, `{"n":[1,1,1,1,1]}`},
		"minus zero":            {`{"n":[-0,0,-0.0,0e5]}`, `{"n":[0,0,0,0]}`},
		"large and small":       {`{"n":[1E21,1e20,0.000001,1e-7,5e-324]}`, `{"n":[1e+21,100000000000000000000,0.000001,1e-7,5e-324]}`},
		"the largest integers":  {`{"n":[9007199254740992,-9007199254740992]}`, `{"n":[9007199254740992,-9007199254740992]}`},
		"escapes that need not": {`{"s":"\u0041\/\u00e9\ud83d\ude00"}`, `{"s":"A/é😀"}`},
		"escapes that must":     {`{"s":"\u0000\u0008\u001f\u0022\u005c\u007f"}`, "{\"s\":\"\\u0000\\b\\u001f\\\"\\\\\x7f\"}"},
		"line separators":       {`{"s":"\u2028\u2029<>&"}`, "{\"s\":\"\u2028\u2029<>&\"}"},
		"no normalisation":      {`{"s":"e\u0301"}`, "{\"s\":\"e\u0301\"}"},
		"literals":              {`{"a":null,"b":true,"c":false,"d":"","e":[],"f":{}}`, `{"a":null,"b":true,"c":false,"d":"","e":[],"f":{}}`},
	} {
		want := sum(`{"action_details":` + c.canonical + `,"action_type":"other","kind":"question","pending_id":"p","session_id":"s","title":"t"}`)
		assert.Equal(t, want, digestOf(t, withDetails(c.details)), name)
	}
}

func TestDifferentContentHasDifferentDigests(t *testing.T) {
	details := []string{`{}`, `{"a":null}`, `{"a":0}`, `{"a":"0"}`, `{"a":[]}`, `{"a":{}}`, `{"a":""}`, `{"a":false}`, `{"A":0}`,
		`{"a":0.1}`, `{"a":0.10000000000000002}`, `{"a":["b","c"]}`, `{"a":["c","b"]}`, `{"a":"é"}`, `{"a":"e\u0301"}`, `{"a":"\u0000"}`, `{"a":"\ufffd"}`}
	seen := make(map[string]string)
	for _, d := range details {
		digest := digestOf(t, withDetails(d))
		assert.Empty(t, seen[digest], "%s has the digest of another", d)
		seen[digest] = d
	}
}

func TestDigestCoversOnlyTheContentOfARequest(t *testing.T) {
	changes := map[string]struct {
		change  func(*Request)
		differs bool
	}{
		"session_id":     {func(r *Request) { r.SessionID = "other" }, true},
		"pending_id":     {func(r *Request) { r.PendingID = "other" }, true},
		"kind":           {func(r *Request) { r.Kind = KindQuestion }, true},
		"title":          {func(r *Request) { r.Title += "." }, true},
		"tool_name":      {func(r *Request) { r.ToolName = "bash" }, true},
		"action_type":    {func(r *Request) { r.ActionType = ActionOther }, true},
		"action_details": {func(r *Request) { r.ActionDetails = json.RawMessage(`{"command":"rm -rf /"}`) }, true},
		"permissions":    {func(r *Request) { r.Permissions = []string{"@network"} }, true},
		"reason":         {func(r *Request) { r.Reason = "" }, true},
		"option_id":      {func(r *Request) { r.Options[0].OptionID = "o" }, true},
		"option name":    {func(r *Request) { r.Options[0].Name = "Go" }, true},
		"option kind":    {func(r *Request) { r.Options[0].Kind = AllowAlways }, true},
		"option text":    {func(r *Request) { r.Options[0].Text = true }, true},
		"option order":   {func(r *Request) { r.Options[0], r.Options[1] = r.Options[1], r.Options[0] }, true},
		"no options":     {func(r *Request) { r.Options = nil }, true},

		"type":            {func(r *Request) { r.Type = "" }, false},
		"task_id":         {func(r *Request) { r.TaskID = "other" }, false},
		"tool_call_id":    {func(r *Request) { r.ToolCallID = "other" }, false},
		"agent_name":      {func(r *Request) { r.AgentName = "other" }, false},
		"host":            {func(r *Request) { r.Host = "other" }, false},
		"user":            {func(r *Request) { r.User = "other" }, false},
		"project":         {func(r *Request) { r.Project = "other" }, false},
		"session_label":   {func(r *Request) { r.SessionLabel = "other" }, false},
		"timeout_seconds": {func(r *Request) { r.TimeoutSeconds = 5 }, false},
		"created_at":      {func(r *Request) { r.CreatedAt = time.Now() }, false},
		"host_asks":       {func(r *Request) { r.HostAsks = true }, false},
		"contain":         {func(r *Request) { r.Contain = ContainPossible }, false},
		"nod_path":        {func(r *Request) { r.NodPath = "/usr/bin/nod" }, false},
		"nod_url":         {func(r *Request) { r.NodURL = "tls://bus.example:4222" }, false},
		"nod_creds":       {func(r *Request) { r.NodCreds = "/etc/nod/agent.nk" }, false},
		"nod_data":        {func(r *Request) { r.NodData = "/var/lib/nod" }, false},
		"rejoin":          {func(r *Request) { r.Rejoin = true }, false},
		"revision":        {func(r *Request) { r.Revision = 9 }, false},
	}
	base := digestOf(t, string(golden(t, "request")))
	for name, c := range changes {
		var r Request
		require.NoError(t, Decode(golden(t, "request"), &r))
		c.change(&r)
		digest, err := Digest(&r)
		require.NoError(t, err)
		assert.Equal(t, c.differs, digest != base, name)
	}
	fields := jsonFields(t, Request{})
	for name := range fields {
		_, tried := changes[name]
		assert.True(t, tried || name == "options", "%s is not tried", name)
	}
}

func TestDigestAbsentAndEmptyAreTheSame(t *testing.T) {
	absent := `{"type":"nod.v1.request","pending_id":"p","session_id":"s","kind":"question","title":"t",` +
		`"action_type":"other","action_details":{},"created_at":"2026-01-18T00:00:00Z"`
	empty := absent + `,"tool_name":"","permissions":[],"options":[],"reason":""}`
	assert.Equal(t, digestOf(t, absent+"}"), digestOf(t, empty))

	var r Request
	require.NoError(t, Decode([]byte(absent+"}"), &r))
	for _, details := range []json.RawMessage{nil, {}, []byte("null"), []byte("{}"), []byte(" { } ")} {
		r.ActionDetails = details
		digest, err := Digest(&r)
		require.NoError(t, err)
		assert.Equal(t, digestOf(t, absent+"}"), digest, "%q", details)
	}
}

func TestDigestFailsOnBrokenDetails(t *testing.T) {
	for _, details := range []string{`{`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":1e400}`} {
		_, err := Digest(&Request{SessionID: "s", PendingID: "p", ActionDetails: json.RawMessage(details)})
		assert.ErrorContains(t, err, "digest of request s.p: ", details)
	}
}

func BenchmarkDigest(b *testing.B) {
	var r Request
	require.NoError(b, Decode(golden(b, "request"), &r))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Digest(&r); err != nil {
			b.Fatal(err)
		}
	}
}
