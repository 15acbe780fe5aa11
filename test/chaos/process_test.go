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
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that can be killed, suspended and started again. Its methods must
// not be called concurrently.
type process struct {
	name  string
	dir   string // the directory of the process's log and clock file
	args  []string
	env   []string
	ready func(ctx context.Context, firstLine <-chan string) error

	cmd    *exec.Cmd
	ended  chan struct{}
	paused bool
}

// clock returns the file that sets the wall clock of a stepped program; see clockFile.
func (p *process) clock() string { return filepath.Join(p.dir, p.name+".clock") }

func (p *process) log() string { return filepath.Join(p.dir, p.name+".log") }

// starter returns a channel to one thread that runs the functions sent to it. Processes
// must be started there: the kernel kills orphaned processes when the thread that started
// them ends, and this thread lasts as long as the tests.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts the process and returns once it is ready to serve.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Env = append(append(os.Environ(), p.env...), clockFile+"="+p.clock())
	cmd.SysProcAttr, cmd.Stderr = orphaned(), log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
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
		_, _ = io.Copy(io.Discard, lines) // reads until the process ends
		_ = cmd.Wait()                    // Wait fails for a process that was killed
	}()
	p.cmd, p.ended, p.paused = cmd, ended, false
	if err := p.ready(ctx, first); err != nil {
		return fmt.Errorf("%s did not come up: %w; its log ends:\n%s", p.name, err, p.said())
	}
	return nil
}

// says returns a function for the field ready. It waits for the program's first line, which
// must contain these words.
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

// stop sends SIGTERM, and kills the process if it has not ended within 30 seconds.
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

// running reports whether the process has not ended.
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

// step sets how far the wall clock of a stepped program is ahead; 0 ends the step.
func (p *process) step(by time.Duration) error {
	return os.WriteFile(p.clock(), []byte(strconv.Itoa(int(by/time.Second))), 0o600)
}
