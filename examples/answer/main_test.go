package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

func TestRun(t *testing.T) {
	// nodtest.Start runs a whole nod and calls this function for each prompt.
	client := nodtest.Start(t, func(p schemas.Prompt) nodtest.Answer {
		switch {
		case strings.Contains(p.Request.Title, "feature-1"):
			return nodtest.Allow()
		case strings.Contains(p.Request.Title, "main"):
			return nodtest.Deny("main stays")
		}
		return nodtest.Answer{} // no answer: the request times out
	})
	for branch, want := range map[string]string{
		"feature-1": "deleted the preview of feature-1\n",
		"main":      "kept the preview of main: permission was denied: main stays\n",
		"feature-2": "kept the preview of feature-2: the permission request timed out",
	} {
		var out strings.Builder
		require.NoError(t, run(t.Context(), client, branch, &out))
		require.Contains(t, out.String(), want)
	}
}
