package operate

import (
	"testing"

	"github.com/nodbus/nod/test/internal/rig"
)

func TestMain(m *testing.M) { rig.MainWithNod(m) }
