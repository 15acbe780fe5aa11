// Command answer publishes a branch if an approver grants it network access:
//
//	go run ./examples/answer feature-1
//
// Its test answers in the approver's place; see package nodtest.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	nod "github.com/nodbus/nod"
)

func main() {
	ctx := context.Background()
	client, err := nod.Connect(ctx)
	if err == nil {
		defer client.Close()
		err = run(ctx, client, os.Args[len(os.Args)-1], 120, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "answer:", err)
		os.Exit(1)
	}
}

// run asks before it publishes a branch. If the approver denies the request or does not answer in time,
// run publishes nothing and prints the reason.
func run(ctx context.Context, client *nod.Client, branch string, timeoutSeconds int, out io.Writer) error {
	request := nod.Permission("publish "+branch, "@network")
	request.SessionID = branch // the permission counts only for this session
	request.TimeoutSeconds = timeoutSeconds
	_, err := client.Ask(ctx, request)
	switch {
	case err == nil:
		fmt.Fprintf(out, "published %s\n", branch)
		return nil
	case errors.Is(err, nod.ErrDenied), errors.Is(err, nod.ErrTimedOut):
		fmt.Fprintf(out, "%s is not published: %v\n", branch, err)
		return nil
	}
	return err // nod failed without a decision
}
