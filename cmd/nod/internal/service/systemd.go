package service

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"
)

const unitName = "nod.service"

// systemd is the one of the user, not of the machine.
type systemd struct{}

// file is the unit. It starts nod again for ever, as what is pending waits for
// it, and gives it the time that its own stopping takes.
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

// unitWord is one word of ExecStart, in which systemd gives a meaning to
// quotes, backslashes, dollars and per cents.
func unitWord(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "%", "%%", "$", "$$").Replace(s)
	return `"` + s + `"`
}

func systemctl(words ...string) command {
	return command{words: append([]string{"systemctl", "--user"}, words...)}
}

func (systemd) start(string) []command {
	return []command{systemctl("daemon-reload"), systemctl("enable", unitName), systemctl("restart", unitName)}
}

func (systemd) stop(string) []command { return []command{systemctl("disable", "--now", unitName)} }

func (systemd) gone() []command {
	end := systemctl("stop", unitName)
	end.lax = true // it has ended, or was never loaded
	return []command{end, systemctl("daemon-reload")}
}

// links is what enabling makes.
func (systemd) links(path string) []string {
	return []string{filepath.Join(filepath.Dir(path), "default.target.wants", unitName)}
}

func (systemd) state() (command, string) { return systemctl("is-active", unitName), "active" }

// note explains lingering where it is off: systemd ends a user's services with
// the user's last session.
func (systemd) note(ctx context.Context) string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	ask := command{words: []string{"loginctl", "show-user", u.Username, "--property=Linger", "--value"}}
	if off, err := ask.says(ctx, "no"); err != nil || !off {
		return ""
	}
	return fmt.Sprintf("nod stops when you log out, and starts when you log in: to keep it running in between, and from boot on: loginctl enable-linger %s", u.Username)
}
