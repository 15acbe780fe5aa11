package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheCommandOfALineIsFoundAfterGlobalFlags(t *testing.T) {
	for line, want := range map[string]string{
		"exec --contain -- true": "exec", "--data exec hook claude-code": "hook", "--data=x -v --nats-url u --creds c exec --run S.T -- bash": "exec",
		"--version": "", "--unknown exec": "", "-- exec": "", "--data": "", "pending": "pending", "": "",
	} {
		command, _ := commandOf(strings.Fields(line))
		assert.Equal(t, want, command, line)
	}
	_, own := commandOf([]string{"exec", "--contain", "--", "ls", "--help"})
	assert.Equal(t, []string{"exec", "--contain"}, own)
}

// Hooks and nod exec read only a part of the definition of nod's command line. The flags in that part
// must be the same as in the whole definition.
func TestASmallCommandLineReadsAsTheWholeOne(t *testing.T) {
	exit := func(int) {}
	for _, line := range []string{
		"exec --contain --project /app --time 3s --permission @network:a:1 --permission @read:/x,y -- make test --help",
		"--data /d --nats-url u --creds /c exec --run S.T -- bash -c ls", "exec --session S --require-enforcement make", "exec --nope -- x", "exec",
	} {
		args := strings.Fields(line)
		small, _, err := parserFor(args, io.Discard, io.Discard, exit)
		require.NoError(t, err)
		var c cli
		whole, err := newParser(&c, io.Discard, io.Discard, exit)
		require.NoError(t, err)
		_, wantErr := whole.Parse(args)
		parsed, err := small.Parse(args)
		if wantErr != nil {
			assert.EqualError(t, err, wantErr.Error(), line)
			continue
		}
		require.NoError(t, err, line)
		assert.Equal(t, c.Exec, parsed.Selected().Target.Interface(), line)
	}
}
