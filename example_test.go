package nod_test

import (
	"context"
	"errors"
	"fmt"

	nod "github.com/nodbus/nod"
)

// An agent asks before it runs a command. It runs the command only if Ask returns no error.
func ExampleClient_Ask() {
	ctx := context.Background()
	c, err := nod.Connect(ctx)
	if err != nil {
		fmt.Println("do not act:", err)
		return
	}
	defer c.Close()
	d, err := c.Ask(ctx, nod.Command("rm -rf build"))
	switch {
	case errors.Is(err, nod.ErrTimedOut):
		fmt.Println("no answer in time")
	case err != nil:
		fmt.Println("do not act:", err)
	default:
		fmt.Println("allowed by", d.By.Name)
	}
}
