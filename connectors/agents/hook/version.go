package hook

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// Version runs the host's program with --version, and returns the three numbers of the version, such as
// 2.1.197. If the program is not in PATH, the error wraps exec.ErrNotFound.
func (h Host) Version(ctx context.Context) (string, error) {
	path, err := exec.LookPath(h.Program)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s --version: %w", path, err)
	}
	version := numbers.FindString(string(out))
	if version == "" {
		return "", fmt.Errorf("%s --version tells no version", path)
	}
	return version, nil
}

var numbers = lazyregexp.New(`\d+\.\d+\.\d+`)

// Older reports whether the version a is older than the version b. A version has three numbers. A
// missing or invalid number counts as 0.
func Older(a, b string) bool {
	var an, bn [3]int
	_, _ = fmt.Sscanf(a, "%d.%d.%d", &an[0], &an[1], &an[2]) // missing numbers stay 0
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &bn[0], &bn[1], &bn[2])
	for i := range an {
		if an[i] != bn[i] {
			return an[i] < bn[i]
		}
	}
	return false
}
