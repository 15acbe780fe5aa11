package service

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

const unitName = "nod.service"

// systemd installs services in one user's systemd instance, not in the system's.
type systemd struct{}

// file returns the systemd unit. systemd restarts nod without a limit, because pending requests wait
// for nod. nod has 30 s to stop, which is more than it needs.
func (systemd) file(s Spec) string {
	words := s.Command()
	for i, w := range words {
		words[i] = unitWord(w)
	}
	return `# Written by nod service install, which writes it anew.
[Unit]
Description=nod, a permission bus for AI agents
Documentation=https://github.com/nodbus/nod
StartLimitIntervalSec=0

[Service]
ExecStart=` + strings.Join(words, " ") + `
Restart=always
RestartSec=5
TimeoutStopSec=30
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
`
}

// unitWord quotes one word of ExecStart, because systemd interprets quotes, backslashes, dollars and
// percent signs.
func unitWord(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "%", "%%", "$", "$$").Replace(s)
	return `"` + s + `"`
}

// words returns the command line in the text of a unit. It reverses the quoting by unitWord.
func (systemd) words(file string) (words []string) {
	line := execStart.FindStringSubmatch(file)
	if line == nil {
		return nil
	}
	plain := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", "%%", "%", "$$", "$")
	for _, quoted := range unitWords.FindAllString(line[1], -1) {
		words = append(words, plain.Replace(quoted[1:len(quoted)-1]))
	}
	return words
}

var (
	execStart = lazyregexp.New(`(?m)^ExecStart=(.*)$`)
	unitWords = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
)

func systemctl(words ...string) command {
	return command{words: append([]string{"systemctl", "--user"}, words...)}
}

func (systemd) start(string) []command {
	return []command{systemctl("daemon-reload"), systemctl("enable", unitName), systemctl("restart", unitName)}
}

func (systemd) stop(string) []command { return []command{systemctl("disable", "--now", unitName)} }

func (systemd) gone(ctx context.Context) error {
	end := systemctl("stop", unitName)
	end.lax = true // the stop command fails if the unit has ended or was never loaded
	return runAll(ctx, []command{end, systemctl("daemon-reload")})
}

// links returns the link that systemctl enable creates.
func (systemd) links(path string) []string {
	return []string{filepath.Join(filepath.Dir(path), "default.target.wants", unitName)}
}

func (systemd) state() (command, string) { return systemctl("is-active", unitName), "active" }

// note tells the user how to turn on lingering. Without lingering, systemd ends a user's services at
// the end of the user's last session.
func (systemd) note(ctx context.Context) string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	ask := command{words: []string{"loginctl", "show-user", u.Username, "--property=Linger", "--value"}}
	if off, err := ask.outputContains(ctx, "no"); err != nil || !off {
		return ""
	}
	return fmt.Sprintf("nod stops when you log out, and starts when you log in: to keep it running in between, and from boot on: loginctl enable-linger %s", u.Username)
}
