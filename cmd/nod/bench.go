package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/nodbus/nod/internal/bench"
)

type benchCmd struct {
	Dir   string `placeholder:"DIR" type:"path" help:"Measure the disk that holds this directory (the one that holds the data directory)."`
	Quick bool   `help:"Make fewer requests, in one round, and at most 1,000 pending ones."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

// Run measures nod, and callbacks on bare NATS for comparison. It uses temporary stores, and not a nod
// that runs on this machine.
func (c *benchCmd) Run(e *env) error {
	dir, err := c.dir(e)
	if err != nil {
		return err
	}
	steps := 0
	report, err := bench.Run(e.ctx, bench.Options{
		Dir: dir, Quick: c.Quick, Version: version(),
		Progress: func(step string) {
			steps++
			fmt.Fprintf(e.stderr, "%2d  %s\n", steps, step)
		},
	})
	switch {
	case e.ctx.Err() != nil:
		fmt.Fprintln(e.stderr, "stopped; nothing is left behind")
		return exit(exitError)
	case err != nil:
		return fmt.Errorf("measure: %w", err)
	case c.JSON:
		return e.printJSON(report)
	}
	fmt.Fprint(e.stdout, report.Table())
	return nil
}

// dir returns the directory in which to make the stores: the one that the user names or, by default,
// the nearest existing directory above the data directory.
func (c *benchCmd) dir(e *env) (string, error) {
	if c.Dir != "" {
		return c.Dir, nil
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return "", err
	}
	for dir := filepath.Dir(place.DataDir); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir, nil
		}
	}
}
