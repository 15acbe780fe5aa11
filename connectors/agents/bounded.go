package agents

// MaxKept is the number of entries at which PutBounded regards a map as full.
const MaxKept = 4096

// PutBounded stores a value in a map that an agent could otherwise fill without limit. If the map is
// full, PutBounded first removes all its entries. A missing entry therefore proves nothing, and the
// caller must let a person decide.
func PutBounded[K comparable, V any](m map[K]V, key K, value V) {
	if _, known := m[key]; !known && len(m) >= MaxKept {
		clear(m)
	}
	m[key] = value
}
