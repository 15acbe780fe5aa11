package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nodbus/nod/internal/testprogram"
)

// process is a program that a test can kill, suspend and start again. Its methods must not be called
// concurrently.
type process struct {
	name  string
	dir   string // the directory that contains the process's log and clock file
	args  []string
	env   []string
	ready func(ctx context.Context, firstLine <-chan string) error

	cmd    *exec.Cmd
	ended  chan struct{}
	paused bool
}

// clock returns the path of the process's clock file (see clockFile).
func (p *process) clock() string { return filepath.Join(p.dir, p.name+".clock") }

func (p *process) log() string { return filepath.Join(p.dir, p.name+".log") }

// The method start starts the process and returns when it is ready.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env = append(append(os.Environ(), p.env...), clockFile+"="+p.clock())
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := testprogram.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	first := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); err == nil {
			first <- line
		}
		close(first)
		_, _ = io.Copy(io.Discard, lines) // someone must read the output until the process ends
		_ = cmd.Wait()                    // Wait fails if the process was killed
	}()
	p.cmd, p.ended, p.paused = cmd, ended, false
	if err := p.ready(ctx, first); err != nil {
		return fmt.Errorf("%s did not come up: %w; its log ends:\n%s", p.name, err, p.said())
	}
	return nil
}

// The function says returns a function for the field ready. The function waits for the first line of output,
// and fails if the line does not contain the given words.
func says(words string) func(context.Context, <-chan string) error {
	return func(ctx context.Context, first <-chan string) error {
		select {
		case line := <-first:
			if !strings.Contains(line, words) {
				return fmt.Errorf("its first line is %q", line)
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// kill sends SIGKILL and waits until the process has ended.
func (p *process) kill() error {
	if p.cmd == nil {
		return nil
	}
	err := p.signal(syscall.SIGKILL)
	<-p.ended
	return err
}

// stop sends SIGTERM. If the process still runs after 30 seconds, stop kills it.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(30 * time.Second):
		return errors.Join(fmt.Errorf("%s did not stop within 30 s", p.name), p.kill())
	}
}

func (p *process) pause() error  { p.paused = true; return p.signal(syscall.SIGSTOP) }
func (p *process) resume() error { p.paused = false; return p.signal(syscall.SIGCONT) }

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// said returns the last 4,000 bytes of the process's log.
func (p *process) said() string {
	log, err := os.ReadFile(p.log())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4000):])
}

// The method step sets how far the wall clock of a stepped program is ahead. 0 sets the right time again.
func (p *process) step(by time.Duration) error {
	return os.WriteFile(p.clock(), []byte(strconv.Itoa(int(by/time.Second))), 0o600)
}
