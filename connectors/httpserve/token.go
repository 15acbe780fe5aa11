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

// minToken is the minimum length of a token in bytes, because an attacker could guess a shorter token.
const minToken = 16

// Token returns the token in a file. If the file does not exist, Token creates it with a new token,
// readable only by its owner. It returns an error of one line if other users may read the file, if the
// token is shorter than minToken, or if it contains spaces.
func Token(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("others may read the token %s (mode %04o): chmod 600 it, or remove it to have a new one made", path, info.Mode().Perm())
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

// newToken creates the token file completely or not at all. If two processes call newToken at the same
// time, one of them creates the file, and both return the token in that file.
func newToken(path string) (string, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".new-*") // CreateTemp makes the file with mode 0600
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
