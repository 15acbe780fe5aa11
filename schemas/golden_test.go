package schemas

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// emptyNoun returns a pointer to an empty noun for a golden file. The file's name is <name>.json or
// <name>-<variant>.json.
func emptyNoun(t testing.TB, file string) any {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "-")
	if name == "settings" {
		return new(Settings)
	}
	for _, m := range Messages() {
		if m.Type == prefix+name {
			return m.New()
		}
	}
	t.Fatalf("%s is named after no message", file)
	return nil
}

func goldens(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("v1/golden/*.json")
	require.NoError(t, err)
	all := make(map[string][]byte)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all[file] = data
	}
	require.NotEmpty(t, all)
	return all
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("v1/golden/" + name + ".json")
	require.NoError(t, err)
	return data
}

func TestGoldenRoundTrip(t *testing.T) {
	// These golden files have empty fields, which Encode leaves out.
	leftOut := map[string][]string{"v1/golden/request.json": {"permissions", "timeout_seconds"}}
	for file, data := range goldens(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			v := emptyNoun(t, file)
			require.NoError(t, Decode(data, v))
			again, err := Encode(v)
			require.NoError(t, err)

			var want map[string]any
			require.NoError(t, json.Unmarshal(data, &want))
			maps.DeleteFunc(want, func(k string, _ any) bool { return slices.Contains(leftOut[file], k) })
			wanted, err := json.Marshal(want)
			require.NoError(t, err)
			assert.JSONEq(t, string(wanted), string(again))
		})
	}
}

func TestUnknownFieldsAreTolerated(t *testing.T) {
	for file, data := range goldens(t) {
		v := emptyNoun(t, file)
		more := strings.Replace(string(data), "{", `{"_meta":{"Kind":"x","kind":["y",1.50,null,true,false]},"später":1,`, 1)
		err := Decode([]byte(more), v)
		if _, strict := v.(*Settings); strict {
			assert.EqualError(t, err, "_meta: is not known here; look for a typing mistake")
			continue
		}
		assert.NoError(t, err, file)
	}
}
