package acp

// answer tells the agent, unless another answer came first.
func (s *sidecar) answer(a *ask, o outcome) {
	if !s.take(a, nil) {
		return
	}
	s.tellAgent(a.id, o)
	s.cancelInEditor(a)
}

// take takes a out of what is open, for the one who answers it; false means
// that somebody else does. The editor's answer to it will count no more.
func (s *sidecar) take(a *ask, why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[a.key] != a {
		return false
	}
	s.takeLocked(a, why)
	return true
}

func (s *sidecar) takeLocked(a *ask, why error) {
	delete(s.open, a.key)
	if a.shown {
		s.late[a.key] = true
	}
	if why != nil {
		a.stop(why)
	}
}

// show lets the editor ask as well. An id whose earlier answer is still to come
// is not shown again: that answer would be taken for this one's.
func (s *sidecar) showInEditor(a *ask) {
	s.mu.Lock()
	if s.open[a.key] != a || s.late[a.key] {
		s.mu.Unlock()
		return
	}
	a.shown = true
	s.mu.Unlock()
	s.tellEditor(a.line)
}

// recall tells an editor that still asks that it need not. Editors may ignore
// that; their answer is swallowed in any case.
func (s *sidecar) cancelInEditor(a *ask) {
	if !a.shown { // no longer changes: a is not open
		return
	}
	if line, err := withdrawal(a.id); err == nil {
		s.tellEditor(line)
	}
}

// leaveToEditor has the editor ask alone, whose answer then passes as any line.
func (s *sidecar) leaveToEditor(a *ask) {
	s.mu.Lock()
	if s.open[a.key] != a {
		s.mu.Unlock()
		return
	}
	delete(s.open, a.key)
	late := s.late[a.key]
	s.mu.Unlock()
	switch {
	case a.shown:
	case late: // see unclear
		s.tellAgent(a.id, a.refused())
	default:
		s.tellEditor(a.line)
	}
}

// unclear answers a request that only the editor could, where its answer could
// not be told from a late one to the same id: nobody chose. False means that it
// can be told.
func (s *sidecar) refuseIfLate(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late[m.key] {
		return false
	}
	s.asks.Go(func() { s.tellAgent(m.id, cancelled) })
	return true
}

// editorAnswered reports whether a response of the editor's goes to the agent.
func (s *sidecar) editorAnswered(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late[m.key] {
		delete(s.late, m.key)
		return false
	}
	a := s.open[m.key]
	switch {
	case a == nil:
		return true // to something else
	case !a.shown:
		return false // to what it was not asked
	case m.failed: // it cannot ask: nod still does
		a.shown = false
		return false
	}
	delete(s.open, m.key)
	a.stop(errInEditor)
	return true
}

// cancelSession ends what is asked in a session that the editor has cancelled:
// the agent hears at once that nobody chose.
func (s *sidecar) cancelSession(session string) {
	for _, a := range s.openIn(session) {
		if s.take(a, errCancelled) {
			s.tellAgent(a.id, cancelled)
		}
	}
}

func (s *sidecar) openIn(session string) (all []*ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.open {
		if a.session == session {
			all = append(all, a)
		}
	}
	return all
}

// drop ends one request that the agent has cancelled. Where the editor asks as
// well, it reads that in the agent's own line.
func (s *sidecar) dropRequest(key string) {
	s.mu.Lock()
	a := s.open[key]
	if a != nil {
		s.takeLocked(a, errDropped)
	}
	s.mu.Unlock()
	if a != nil {
		s.asks.Go(func() { s.tellAgent(a.id, cancelled) })
	}
}
