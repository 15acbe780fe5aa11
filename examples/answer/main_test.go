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
		switch p.Request.Reason {
		case "publish feature-1":
			return nodtest.Allow()
		case "publish main":
			return nodtest.Deny("main is published at night")
		}
		return nodtest.Answer{} // without an answer, the request times out
	})
	for branch, want := range map[string]string{
		"feature-1": "published feature-1\n",
		"main":      "main is not published: permission was denied: main is published at night\n",
		"feature-2": "feature-2 is not published: the permission request timed out",
	} {
		var out strings.Builder
		require.NoError(t, run(t.Context(), client, branch, 1, &out))
		require.Contains(t, out.String(), want)
	}
}
