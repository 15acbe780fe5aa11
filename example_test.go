package nod_test

import (
	"context"
	"errors"
	"fmt"

	nod "github.com/nodbus/nod"
)

// An agent asks before it runs a command, and runs it only where nothing at all
// went wrong.
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
		fmt.Println("nobody answered")
	case err != nil:
		fmt.Println("do not act:", err)
	default:
		fmt.Println("go on, as", d.By.Name, "says")
	}
}
