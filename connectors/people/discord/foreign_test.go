package discord_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/discord/discordtest"
	"github.com/nodbus/nod/connectors/people/peopletest"
)

// discord.js works with the in-memory Discord, because its messages have the form of Discord's.
func TestDiscordJSWorksWithTheFake(t *testing.T) {
	if os.Getenv("NOD_DISCORD_TEST_NPM") == "" {
		t.Skip("it needs npm and the network: NOD_DISCORD_TEST_NPM=1 go test ./connectors/people/discord -run DiscordJS")
	}
	r := newRig(t)
	modules := peopletest.Packages(t, "discord.js@14.28.1")
	c := exec.Command("node", "testdata/client.mjs", r.URL(), modules)
	c.Env = append(os.Environ(), "TOKEN="+discordtest.Token, "PERSON="+ann)
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	waits := func(what string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, time.Minute, 10*time.Millisecond, what)
	}
	read := func(text string) func() bool {
		return func() bool {
			for _, read := range r.Server.Read(ann) {
				if strings.Contains(read.Text, text) {
					return true
				}
			}
			return false
		}
	}
	waits("a message with buttons", func() bool { all := r.Chat(ann); return len(all) == 1 && len(all[0].Buttons) == 2 })
	question := r.Chat(ann)[0].ID
	r.Press(ann, ann, question, "why")
	waits("a modal", func() bool { _, open := r.Server.Open(ann); return open })
	r.Submit(ann, "because")
	waits("the text of the modal", read("heard because under "+question))
	r.Press(ann, ann, question, "x")
	waits("the reply to a press", read("pressed"))
	r.Command(ann, "pending", false)
	waits("the command", read("commanded pending"))
	r.Reconnect()
	waits("another connection", func() bool { return r.Connected() == 1 && r.Resumed() == 1 })
	r.Command(ann, "again", false)
	waits("a command over the other connection", read("commanded again"))
}
