// Command answer deletes a branch's preview deployment if an approver allows it:
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
	"github.com/nodbus/nod/schemas"
)

func main() {
	ctx := context.Background()
	client, err := nod.Connect(ctx)
	if err == nil {
		defer client.Close()
		err = run(ctx, client, os.Args[len(os.Args)-1], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "answer:", err)
		os.Exit(1)
	}
}

// run asks before it deletes the preview of a branch. Without an allow it keeps
// the preview, and says why.
func run(ctx context.Context, client *nod.Client, branch string, out io.Writer) error {
	input, err := schemas.Encode(map[string]string{"branch": branch})
	if err != nil {
		return err
	}
	_, err = client.Ask(ctx, schemas.Request{
		Kind: schemas.KindToolCall, Title: "Delete the preview of " + branch, ToolName: "DeletePreview",
		ActionType: schemas.ActionOther, ActionDetails: input,
		TimeoutSeconds: 2, // short for the example's test; without it the settings decide
	})
	switch {
	case err == nil:
		fmt.Fprintf(out, "deleted the preview of %s\n", branch)
		return nil
	case errors.Is(err, nod.ErrDenied), errors.Is(err, nod.ErrTimedOut):
		fmt.Fprintf(out, "kept the preview of %s: %v\n", branch, err)
		return nil
	}
	return err
}
