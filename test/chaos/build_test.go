package chaos

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/nodbus/nod/internal/testprogram"
)

type programs struct{ nod, natsServer string }

// scratch is the temporary directory of this test process. TestMain creates and removes it.
var scratch string

// plain builds the programs as they are built for a release.
var plain = sync.OnceValues(func() (programs, error) { return build("plain") })

// stepped builds the programs with a wall clock that the test can change through a file (see testprogram.ClockFile).
var stepped = sync.OnceValues(func() (programs, error) {
	overlay, err := testprogram.SteppedClock(filepath.Join(scratch, "clock"))
	if err != nil {
		return programs{}, err
	}
	return build("stepped", "-overlay", overlay)
})

func build(name string, flags ...string) (programs, error) {
	dir := filepath.Join(scratch, name)
	p := programs{nod: filepath.Join(dir, "nod"), natsServer: filepath.Join(dir, "nats-server")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, err
	}
	for out, what := range map[string]string{p.nod: "../../cmd/nod", p.natsServer: "github.com/nats-io/nats-server/v2"} {
		if err := testprogram.Build(what, out, flags...); err != nil {
			return p, err
		}
	}
	return p, nil
}
