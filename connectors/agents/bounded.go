package agents

// MaxKept limits the entries of a map to which only PutBounded adds.
const MaxKept = 4096

// PutBounded stores a value under a key in a map that an agent makes grow. It empties a full
// map first, so the caller must be safe without the entries: a request that lacks them must
// reach a person.
func PutBounded[K comparable, V any](m map[K]V, key K, value V) {
	if _, known := m[key]; !known && len(m) >= MaxKept {
		clear(m)
	}
	m[key] = value
}
