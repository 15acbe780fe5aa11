package acp

// answer sends o to the agent, unless another answer came first.
func (s *sidecar) answer(a *ask, o outcome) {
	if !s.take(a, nil) {
		return
	}
	s.tellAgent(a.id, o)
	s.cancelInEditor(a)
}

// take removes a from the open requests, so that the caller answers it. It returns
// false if another goroutine does. The editor's later answer to it will be dropped.
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

// showInEditor makes the editor show the request too. It does not if the editor
// still owes an answer to an earlier request with the same id: that answer would
// count for this request.
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

// cancelInEditor tells the editor to stop asking. Editors may ignore that; their
// answer is dropped in any case.
func (s *sidecar) cancelInEditor(a *ask) {
	if !a.shown { // safe without the lock: a is no longer open, so shown does not change
		return
	}
	if line, err := withdrawal(a.id); err == nil {
		s.tellEditor(line)
	}
}

// leaveToEditor makes the editor alone ask; its answer then passes like any other line.
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
	case late: // see refuseIfLate
		s.tellAgent(a.id, a.refused())
	default:
		s.tellEditor(a.line)
	}
}

// refuseIfLate answers a request that only the editor can show with "cancelled" if the
// editor still owes an answer to an earlier request with the same id: the two answers
// could not be told apart. It returns false if there is no such answer to come.
func (s *sidecar) refuseIfLate(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late[m.key] {
		return false
	}
	s.asks.Go(func() { s.tellAgent(m.id, cancelled) })
	return true
}

// editorAnswered reports whether to pass a response of the editor on to the agent.
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
		return true // the response is to another kind of request
	case !a.shown:
		return false // the editor was not shown this request
	case m.failed: // the editor cannot ask; nod still does
		a.shown = false
		return false
	}
	delete(s.open, m.key)
	a.stop(errInEditor)
	return true
}

// cancelSession ends the open requests of a session that the editor has cancelled.
// It answers the agent "cancelled" at once.
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

// dropRequest ends a request that the agent has cancelled. If the editor shows the
// request too, the agent's own line tells it.
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
