package people

import (
	"slices"
	"sync"
)

// maxRemembered is the number of entries that a Memory keeps.
const maxRemembered = 20000

// Memory is a map, for a carrier, that keeps its newest 20,000 entries. Another worker or a restarted one
// does not have them, so a carrier may use them only for better replies. Memory is safe for concurrent
// use.
type Memory struct {
	mu    sync.Mutex
	of    map[string]string
	order []string
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{of: map[string]string{}} }

// Put sets the value of a key.
func (m *Memory) Put(key, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.of[key]; !there {
		m.order = append(m.order, key)
	}
	m.of[key] = value
	if len(m.order) > maxRemembered {
		delete(m.of, m.order[0])
		m.order = m.order[1:]
	}
}

// Get returns the value of a key, or "".
func (m *Memory) Get(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[key]
}

// Remove removes an entry.
func (m *Memory) Remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.of[key]; !there {
		return
	}
	delete(m.of, key)
	i := slices.Index(m.order, key)
	m.order = slices.Delete(m.order, i, i+1)
}
