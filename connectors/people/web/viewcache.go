package web

import (
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// maxCachedViews is the number of views at which a viewCache drops all of them.
const maxCachedViews = 256

// viewCache keeps the latest views (requests in the form for clients), because several clients often need
// the same views.
type viewCache struct {
	mu    sync.Mutex
	views map[string]cachedView // the views by request key
}

type cachedView struct {
	revision uint64
	view     *requestView
}

// of returns the view of a pending request, from the cache if it contains this revision. The
// caller must not change the view.
func (v *viewCache) of(p *schemas.Prompt, now time.Time) *requestView {
	key := p.Key()
	v.mu.Lock()
	cached, ok := v.views[key]
	v.mu.Unlock()
	if ok && cached.revision == p.Revision && p.Revision != 0 {
		return cached.view
	}
	made := cachedView{p.Revision, newRequestView(p, now)}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.views == nil || len(v.views) >= maxCachedViews {
		v.views = map[string]cachedView{}
	}
	v.views[key] = made
	return made.view
}

func (v *viewCache) forget(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.views, key)
}
