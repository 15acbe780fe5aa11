package people

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// Ann's message on Telegram shows another approver's vote at the terminal and keeps its buttons.
// Ann's allow is then the second vote.
func TestTelegramShowsTheVoteOfAnotherPerson(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.write("settings.json", fmt.Sprintf(`{
		"approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "telegram", "user_id": "%d"}]},
			{"name": "Bob", "identities": [{"connector": "terminal", "user_id": %q}]}]},
		"permissions": {"confirm": [{"risk": "low", "votes": 2}], "join_identical": false, "open_prompts": 0},
		"connectors": {"telegram": {"base_url": %q, "token_file": "%s/token"}}
	}`, annOnTG, rig.Me(t), p.URL(), p.Dir))
	p.StartNod()
	w := p.asks("votes-1")
	require.Contains(t, p.question("votes-1").Text, "0 of 2")
	stdout, stderr, code := p.Run("allow", "votes-1")
	require.Equal(t, 6, code, stdout+stderr)
	require.Eventually(t, func() bool { return strings.Contains(p.question("votes-1").Text, "1 of 2: Bob") }, rig.Patience, 10*time.Millisecond)
	p.press(p.question("votes-1"), "Allow")
	d := p.hears(w)
	require.Len(t, d.Votes, 2)
	require.Eventually(t, func() bool {
		for _, m := range p.Chat(annOnTG) {
			if strings.Contains(m.Text, "Bob and Ann") && len(m.Buttons) == 0 {
				return true
			}
		}
		return false
	}, rig.Patience, 10*time.Millisecond)
}
