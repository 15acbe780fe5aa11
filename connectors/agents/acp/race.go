package acp

// answer sends o to the agent, unless another answer came first.
func (s *sidecar) answer(a *ask, o outcome) {
	if !s.take(a, nil) {
		return
	}
	s.tellAgent(a.id, o)
	s.cancelInEditor(a)
}

// take removes a from the open requests and returns true: only its caller may answer a
// then. It returns false if another goroutine has taken a. If the editor shows a, its
// later answer will be dropped. If why is not nil, the wait for nod ends and the
// request is withdrawn.
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

// showInEditor also shows the request in the editor. It does nothing if the editor
// still owes an answer to an earlier request with the same id: that answer would count
// for this request.
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

// cancelInEditor tells an editor that shows the request to close its prompt. Some
// editors ignore that; their answer is dropped in any case.
func (s *sidecar) cancelInEditor(a *ask) {
	if !a.shown { // safe without the lock: a is no longer open, so shown does not change
		return
	}
	if line, err := withdrawal(a.id); err == nil {
		s.tellEditor(line)
	}
}

// leaveToEditor leaves the request to the editor alone, whose answer then passes to the
// agent like any other line. It refuses the request if the editor still owes an answer
// to an earlier request with the same id.
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

// refuseIfLate handles a request that only the editor can show. If the editor still
// owes an answer to an earlier request with the same id, refuseIfLate answers
// "cancelled" and returns true, because the two answers could not be told apart.
// Otherwise it returns false.
func (s *sidecar) refuseIfLate(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late[m.key] {
		return false
	}
	s.asks.Go(func() { s.tellAgent(m.id, cancelled) })
	return true
}

// editorAnswered handles a response of the editor, and reports whether to pass it to
// the agent.
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

// cancelSession ends the open requests of a session that the editor has cancelled, and
// answers each "cancelled" at once.
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

// dropRequest ends a request that the agent has cancelled. An editor that shows the
// request gets the agent's own message about it.
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
