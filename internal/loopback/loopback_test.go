package loopback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/internal/loopback"
)

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example": false, "127.0.0.1.example": false, "[::1]": false, "127.1": false,
	} {
		assert.Equal(t, want, loopback.Is(host), host)
	}
}
