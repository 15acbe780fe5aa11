package whatsapp

import "sync"

// remembered is the number of entries that a memory keeps.
const remembered = 20000

// memory keeps the newest entries of a map. What it holds only improves replies: a carrier that has lost
// it, or another worker, handles every answer correctly.
type memory struct {
	mu    sync.Mutex
	of    map[string]string
	order []string
}

func newMemory() *memory { return &memory{of: map[string]string{}} }

func (m *memory) put(key, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.of[key]; !there {
		m.order = append(m.order, key)
	}
	m.of[key] = value
	if len(m.order) > remembered {
		delete(m.of, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *memory) get(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[key]
}

// remove clears an entry. Its place in the order stays until it is the oldest.
func (m *memory) remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}
