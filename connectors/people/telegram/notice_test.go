package telegram

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
)

// After the text that an answer is being recorded, nod shows the person only alerts. Other texts do not
// interrupt the person again.
func TestOnlyAlertsFollowTheRecordingNotice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var read []string
		tell, stop := withRecordingNotice(func(text string, _ bool) { read = append(read, text) })
		defer stop()
		time.Sleep(recordingAfter)
		synctest.Wait()
		tell.say("Nothing left to do: Bob allowed this once.")
		tell.alert("From now on, 1: Bash(make)")
		require.Equal(t, []string{people.Recording, "From now on, 1: Bash(make)"}, read)
	})
}
