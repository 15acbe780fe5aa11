package acp

import (
	"context"
	"io"

	"github.com/nodbus/nod/connectors/agents/relay"
)

// RunCommand starts the command argv as the agent, and connects the agent to the editor by Run. It returns
// the agent's exit code, like relay.Program.Run. It returns an error only if it could not start the agent.
func RunCommand(ctx context.Context, argv []string, editor relay.Peer, stderr io.Writer, connect Connect, o Options) (exit int, err error) {
	agent := relay.Program{Role: "the agent", Args: argv, Stderr: stderr}
	return agent.Run(ctx, func(in io.WriteCloser, out io.Reader) {
		_ = Run(ctx, editor, relay.Peer{In: in, Out: out}, connect, o) // an error means that the output has ended
	})
}
