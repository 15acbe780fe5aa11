package acp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Listen listens on addr, HOST:PORT, for a stream's HTTP endpoints. If other machines could
// reach addr, it returns an error unless remote is set. An empty host means 127.0.0.1, or
// every address of the machine if remote is set.
func Listen(addr string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: give the address as HOST:PORT, such as 127.0.0.1:4290", addr, err)
	}
	if host == "" && !remote {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); !remote && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen on %s: other machines could reach it over plain HTTP: use 127.0.0.1, or allow it with --remote", addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

const minToken = 16 // characters; a shorter token could be guessed

// Token returns the token in a file. If the file does not exist, Token creates it with a
// new token, readable by its owner only. It returns an error if other users may read the
// file, or if the token is shorter than minToken.
func Token(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the token in %s can be read by others: chmod 600 %[1]s, or delete it for a new one", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < minToken {
		return "", fmt.Errorf("the token in %s is shorter than %d characters: delete it for a new one", path, minToken)
	}
	return token, nil
}

// newToken creates the file with its whole content or not at all. If two processes call
// it at once, one creates the file and both return its token.
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
	if err := errors.Join(err, tmp.Close()); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return Token(path)
}
