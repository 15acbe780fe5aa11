package hook

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"time"
)

// Version is what the host's program in PATH says of its version, three numbers.
// Its error is exec.ErrNotFound where there is no such program.
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

var numbers = regexp.MustCompile(`\d+\.\d+\.\d+`)

// Older compares two versions of three numbers. What is none is older than any.
func Older(a, b string) bool {
	var an, bn [3]int
	_, _ = fmt.Sscanf(a, "%d.%d.%d", &an[0], &an[1], &an[2]) // what is missing is 0
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &bn[0], &bn[1], &bn[2])
	for i := range an {
		if an[i] != bn[i] {
			return an[i] < bn[i]
		}
	}
	return false
}
