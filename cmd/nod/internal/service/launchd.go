package service

import (
	"context"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// label is nod's name in launchd.
const label = "com.github.nodbus.nod"

// endTimeout is the time after which launchd kills a nod that does not end.
const endTimeout = 30 * time.Second

// launchd is the service manager of macOS, for one logged-in user. launchd calls a user's services
// agents.
type launchd struct{ uid int }

// file returns the property list. launchd does not rotate files, so the output that nod does not write to its
// log goes to a file whose size nod itself limits.
func (launchd) file(s Spec) string {
	var words strings.Builder
	for _, w := range s.Command() {
		fmt.Fprintf(&words, "\t\t<string>%s</string>\n", escape(w))
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by nod service install, which writes it anew. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + label + `</string>
	<key>ProgramArguments</key>
	<array>
` + words.String() + `	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<true/>
	<key>ThrottleInterval</key>
	<integer>5</integer>
	<key>ExitTimeOut</key>
	<integer>` + strconv.Itoa(int(endTimeout.Seconds())) + `</integer>
	<key>Umask</key>
	<integer>63</integer>
	<key>ProcessType</key>
	<string>Background</string>
	<key>StandardOutPath</key>
	<string>/dev/null</string>
	<key>StandardErrorPath</key>
	<string>` + escape(stderrFile(s.DataDir)) + `</string>
</dict>
</plist>
`
}

func (launchd) words(file string) []string {
	var list struct {
		Words []string `xml:"dict>array>string"`
	}
	if xml.Unmarshal([]byte(file), &list) != nil {
		return nil
	}
	return list.Words
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder's Write does not fail
	return b.String()
}

func (l launchd) domain() string { return fmt.Sprintf("gui/%d", l.uid) }

// start first unloads the agent, because launchd reads the property list only when it loads an agent.
// The load command is retried, because launchd refuses to load an agent while the old process is
// ending.
func (l launchd) start(path string) []command {
	return append(l.stop(path), command{words: []string{"launchctl", "bootstrap", l.domain(), path}, retries: 20})
}

func (l launchd) stop(string) []command {
	return []command{{words: []string{"launchctl", "bootout", l.domain() + "/" + label}, lax: true}}
}

// gone waits until launchd no longer lists the agent. The command bootout may return while nod's
// process is still ending.
func (l launchd) gone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout) // all tries of the command share one time limit
	defer cancel()
	loaded, _ := l.state()
	loaded.retries, loaded.fails = int(endTimeout/pause), true
	if _, err := loaded.output(ctx); err != nil {
		return &Unreached{Todo: []string{l.stop("")[0].String()}, Err: err}
	}
	return nil
}

func (launchd) links(string) []string { return nil }

func (l launchd) state() (command, string) {
	return command{words: []string{"launchctl", "print", l.domain() + "/" + label}}, "state = running"
}

func (launchd) note(context.Context) string { return "" }
