package agents

// MaxKept is the largest number of entries in a map to which only PutBounded adds.
const MaxKept = 4096

// PutBounded stores a value in a map that an agent could otherwise fill without limit. It empties a
// full map first. Without the lost entries the caller must remain safe: it must ask a person.
func PutBounded[K comparable, V any](m map[K]V, key K, value V) {
	if _, known := m[key]; !known && len(m) >= MaxKept {
		clear(m)
	}
	m[key] = value
}
