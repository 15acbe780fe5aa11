package operate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// smallDisk limits a file system to 64 MB. nod's reserve on it is then 4 MB.
const smallDisk = "size=64m"

// Other programs fill the disk of a running nod. nod refuses new requests with the reason, still decides
// pending ones, and survives kill -9. When the disk has room again, nod accepts requests without a restart.
func TestAFullDiskRefusesRequestsAndGoesOn(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	settings, err := os.ReadFile(filepath.Join(m.Dir, "settings.json"))
	require.NoError(t, err)
	if err := syscall.Mount("tmpfs", m.Dir, "tmpfs", 0, smallDisk); err != nil {
		t.Skipf("no small file system can be mounted here, which takes root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(m.Dir, syscall.MNT_DETACH) })
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), settings, 0o600))
	metrics := testports.Address(t)
	m.StartNod("--metrics", metrics)
	for _, id := range []string{"one", "two", "three", "four"} {
		m.Asked(t, id, "--session", "full", "--tool", "Frobnicate")
	}

	fill(t, m, 3<<20)
	isNotReady(t, metrics)
	allows(t, m, "one")

	fill(t, m, 0)
	allows(t, m, "two") // nod can allow on the full disk, because the first write on it frees the reserve
	isNotReady(t, metrics)

	m.Kill()
	m.StartNod()
	isRefused(t, m, "after-start")
	allows(t, m, "three")

	require.NoError(t, os.Remove(filepath.Join(m.Dir, "fill")))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(m.Dir, "reserve"))
		return err == nil
	}, time.Minute, rig.Tick, "the reserve is allocated again")
	m.Asked(t, "after", "--session", "full", "--tool", "Frobnicate")
	allows(t, m, "four")
	allows(t, m, "after")
	for _, id := range []string{"one", "two", "three"} { // decisions that were made on the full disk stay
		out, errs, code := m.Run("ask", "--session", "full", "--id", id, "--tool", "Frobnicate", "--json")
		require.Zero(t, code, out+errs)
	}
}

// fill fills the machine's disk, as another program would, until only the given number of bytes is free.
func fill(t *testing.T, m *rig.Machine, left int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(m.Dir, "fill"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer f.Close()
	for block := make([]byte, 64<<10); ; {
		var s syscall.Statfs_t
		require.NoError(t, syscall.Statfs(m.Dir, &s))
		free := int(s.Bavail) * int(s.Bsize)
		if free <= left {
			return
		}
		if _, err := f.Write(block[:min(len(block), free-left)]); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			require.NoError(t, err)
		}
	}
}

// isNotReady requires that /readyz says that nod accepts no request, and why.
func isNotReady(t *testing.T, address string) {
	t.Helper()
	resp, err := http.Get("http://" + address + "/readyz")
	require.NoError(t, err)
	defer resp.Body.Close()
	why, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, string(why))
	require.Contains(t, string(why), "the disk of nod's data directory is almost full")
}

// isRefused requires that nod refuses an agent's request with the reason. It uses the bus, because
// nod ask would try for 15 s.
func isRefused(t *testing.T, m *rig.Machine, id string) {
	t.Helper()
	conn, err := bus.Join(t.Context(), bus.Place{DataDir: m.Dir}, roles.AgentID("local"), rig.Quiet())
	require.NoError(t, err)
	defer conn.Close()
	asker := bus.NewAsker(conn, "local")
	defer asker.Close()
	soon, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = asker.Submit(soon, rig.Deploy("full", id))
	require.ErrorIs(t, err, &schemas.Error{Code: schemas.CodeUnavailable})
	require.ErrorContains(t, err, "the disk of nod's data directory is almost full")
	require.ErrorContains(t, err, "make room on that disk")
}

// allows allows a request. If the reply does not say whether nod has stored the answer, which can happen on a
// busy machine, allows looks at the request again and answers anew, as the reply says; nod allow does both.
func allows(t *testing.T, m *rig.Machine, id string) {
	t.Helper()
	for until := time.Now().Add(rig.Patience); ; {
		_, errs, code := m.Run("allow", id, "--session", "full")
		if code == 0 {
			return
		}
		require.Contains(t, errs, people.NotConfirmed)
		require.True(t, time.Now().Before(until), errs)
	}
}
