package acp

import (
	"context"
	"io"

	"github.com/nodbus/nod/connectors/agents/relay"
)

// RunCommand starts the agent with the command argv and connects it to the editor with Run. It returns
// the agent's exit code, as relay.Program.Run does. It returns an error only if the agent could not be
// started.
func RunCommand(ctx context.Context, argv []string, editor relay.Peer, stderr io.Writer, connect Connect, o Options) (exit int, err error) {
	agent := relay.Program{Role: "the agent", Args: argv, Stderr: stderr}
	return agent.Run(ctx, func(in io.WriteCloser, out io.Reader) {
		_ = Run(ctx, editor, relay.Peer{In: in, Out: out}, connect, o) // an error means that the output has ended
	})
}
