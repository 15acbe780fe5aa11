package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
)

func TestRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(roles.ConnectorID(name))) // creates the connector's key, as the command nod keys add does
	n, err := embed.Start(ctx, embed.Options{
		DataDir: dir, EngineAlone: true,
		Settings: []byte(`{"approvers":{"people":[{"name":"Ann","identities":[{"connector":"lines","user_id":"ann"}]}]}}`),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Stop(context.WithoutCancel(ctx))) }()
	place := bus.Place{DataDir: dir}

	toConnector, typed := io.Pipe()
	shown, fromConnector := io.Pipe()
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(running, place, "ann", toConnector, fromConnector) }()
	screen := make(chan string, 1000)
	go func() {
		for s := bufio.NewScanner(shown); s.Scan(); {
			screen <- s.Text()
		}
	}()
	// await returns the rest of the next line that begins with prefix.
	await := func(prefix string) string {
		for {
			select {
			case line := <-screen:
				if rest, ok := strings.CutPrefix(line, prefix); ok {
					return rest
				}
			case <-ctx.Done():
				require.FailNow(t, "the connector did not write: "+prefix)
			}
		}
	}

	await("ready") // without a worker, nod cannot reach Ann and refuses requests
	client, err := nod.Connect(ctx, nod.Options{Place: place})
	require.NoError(t, err)
	defer client.Close()
	for choice, want := range map[string]error{"allow_once: ": nil, "reject_once: ": nod.ErrDenied} {
		decided := make(chan error, 1)
		request := nod.Command("make deploy")
		request.SessionID = strings.Trim(choice, ": ") // each request has its own session, because nod remembers the denial of a call in its session
		go func() {
			_, err := client.Ask(ctx, request)
			decided <- err
		}()
		line := await(choice)
		_, err := io.WriteString(typed, line+"\n")
		require.NoError(t, err)
		await(strings.Fields(line)[1] + ": ") // waits for the outcome
		require.ErrorIs(t, <-decided, want)
	}
	stop()
	require.NoError(t, <-ended)
}
