package httpserve

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// minToken is the least number of characters of a token, against guessing.
const minToken = 16

// Token reads a token from a file that only its owner may read. If the file does not
// exist, Token creates it with a new token. Its errors are one line.
func Token(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("others may read the token %s (mode %04o): remove it to have a new one made", path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < minToken || len(strings.Fields(token)) != 1 {
		return "", fmt.Errorf("%s is not one word of at least %d characters: remove it to have a new token made", path, minToken)
	}
	return token, nil
}

// newToken creates the file complete or not at all. If two processes create it at once,
// the file of one stays and the other reads it.
func newToken(path string) (string, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(rand.Text() + "\n")
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return Token(path)
}
