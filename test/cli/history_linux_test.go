package cli

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// If standard error is a terminal, nod show and nod history show there how far they have read the log, and
// remove this line at the end.
func TestATerminalShowsHowFarTheLogWasRead(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestHistoryAndShowGoBackAsFarAsTheLog reads the same log")
	env := rig.Start(t, rig.AtTheTerminal(t), func(s *rig.Setup) { s.Engine.RecordsKept = time.Nanosecond })
	for i := range 1100 { // this is more than one page of the log
		e := schemas.LogEntry{Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogSession, SessionID: "S", Actor: "test"}
		_, _, err := env.Store.Log.Append(env.Ctx, fmt.Sprint(i), e)
		env.NoError(err)
	}
	for _, args := range [][]string{{"show", "nosuch"}, {"history", "nothing"}} {
		master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		env.NoError(err)
		env.NoError(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
		n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
		env.NoError(err)
		slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
		env.NoError(err)
		cmd := env.Command(args...)
		cmd.Stderr = slave
		_ = cmd.Run() // nod show fails, because the request is unknown
		slave.Close()
		var said bytes.Buffer
		_, _ = said.ReadFrom(master) // ReadFrom returns an error when the other side closes the terminal
		master.Close()
		env.Regexp(`^\r\x1b\[Kreading the log back to .* …\r\x1b\[K(nod: )?no`, said.String(), args)
	}
}
