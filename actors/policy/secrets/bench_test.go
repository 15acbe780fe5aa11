package secrets_test

import (
	"testing"

	"github.com/nodbus/nod/actors/policy/secrets"
)

// BenchmarkListed looks up the path of an ordinary file. At the start of a contained command, every
// file of the project is looked up.
func BenchmarkListed(b *testing.B) {
	names := secrets.Compile()
	for _, p := range []string{"/home/ann/code/shop/src/components/button.tsx", "/tmp/build/shop/src/components/button.tsx"} {
		b.Run(p[:5], func(b *testing.B) {
			for b.Loop() {
				names.Listed(p)
			}
		})
	}
}

func BenchmarkProtected(b *testing.B) {
	names := secrets.CompileProtected()
	for b.Loop() {
		names.Has("src/components/button.tsx")
	}
}
