package engine

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// A person is told why a write was not compared with its file: all readers are busy, or nod may not
// know all rules. A call that writes no file gets no note and no reader.
func TestACallThatIsNotComparedSaysWhy(t *testing.T) {
	pol, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	e := &intake{base: &base{Options: Options{Host: "here"}}, reading: make(chan struct{})} // no reader is free
	for _, c := range []struct {
		tool  string
		rules *policy.Policy
		want  *schemas.DiskFile
	}{
		{"Write", pol, &schemas.DiskFile{Note: policy.NoTime}},
		{"Write", nil, &schemas.DiskFile{Note: "nod is not sure of its rules"}},
		{"Bash", pol, nil},
	} {
		s := &askState{}
		s.request.Kind, s.request.Host = schemas.KindToolCall, "here"
		s.rules.policy = c.rules
		s.rules.call = policy.Call{ToolName: c.tool, Input: json.RawMessage(`{"file_path":"/a","content":"x"}`)}
		got, err := e.readFile(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, result{}, got)
		require.Equal(t, c.want, s.plan.onDisk, c.tool)
	}
}
