// Command ask runs a shell command if nod allows it:
//
//	go run ./examples/ask 'rm -rf build'
//
// It shows how an agent written in Go asks and acts on the decision.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	nod "github.com/nodbus/nod"
)

func main() {
	// An interrupt ends ctx, and Ask then withdraws the request.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, nod.Options{}, strings.Join(os.Args[1:], " "), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ask:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o nod.Options, command string, out io.Writer) error {
	client, err := nod.Connect(ctx, o)
	if err != nil {
		return err // nod may not be running; without a decision, do not act
	}
	defer client.Close()
	request := nod.Command(command)
	request.AgentName = "Example agent" // the approver sees this name
	request.Reason = "to show how a program asks"
	decision, err := client.Ask(ctx, request)
	switch {
	case errors.Is(err, nod.ErrEdited):
		// The approver may have allowed another command in place of this one.
		var edited struct{ Command string }
		if err := json.Unmarshal(decision.UpdatedInput, &edited); err != nil {
			return fmt.Errorf("read the command that was allowed: %w", err)
		}
		command = edited.Command
	case err != nil:
		return err // denied, timed out, withdrawn, or nod failed: do not act
	}
	fmt.Fprintf(out, "allowed by %s: %s\n", decision.By.Kind, command)
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Stdout, shell.Stderr = out, out
	return shell.Run()
}
