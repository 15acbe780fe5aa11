package acp

// answer sends o to the agent, unless another answer came first.
func (s *sidecar) answer(a *ask, o outcome) {
	if !s.take(a, nil) {
		return
	}
	s.tellAgent(a.id, o)
	s.cancelInEditor(a)
}

// take removes a request from the open requests and returns true; then only its caller may
// answer the request. It returns false if the request was taken before. If the editor shows
// the request, the sidecar drops the editor's later answer. If why is not nil, the method run
// also stops waiting for nod and withdraws the request; why is the reason.
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

// showInEditor passes the agent's request to the editor too. It does nothing if the editor
// has not answered an earlier request with the same id, because that answer would count for
// this request.
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

// cancelInEditor tells the editor to close its prompt, if it shows the request. Some editors
// ignore the message; editorAnswered drops their answer.
func (s *sidecar) cancelInEditor(a *ask) {
	if !a.shown { // safe without the lock: a.shown changes only while the request is open, and the request is no longer open
		return
	}
	if line, err := withdrawal(a.id); err == nil {
		s.tellEditor(line)
	}
}

// leaveToEditor passes the request to the editor, unless the editor shows it already. The
// editor's answer then passes to the agent like any other line. If the editor has not
// answered an earlier request with the same id, leaveToEditor refuses the request.
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

// refuseIfLate answers request m "cancelled" and returns true, if the editor has not answered
// an earlier request with the same id: the editor's two answers could not be told apart.
// Otherwise it returns false, and the caller may pass m to the editor.
func (s *sidecar) refuseIfLate(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late[m.key] {
		return false
	}
	s.asks.Go(func() { s.tellAgent(m.id, cancelled) })
	return true
}

// editorAnswered handles a response of the editor. It reports whether the response must be
// passed to the agent.
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
		return true // the response answers another kind of request
	case !a.shown:
		return false // the editor does not show this request, so it cannot answer it
	case m.failed: // the editor cannot show the request; nod still asks a person
		a.shown = false
		return false
	}
	delete(s.open, m.key)
	a.stop(errInEditor)
	return true
}

// cancelSession withdraws the open requests of a session whose turn the editor cancelled,
// and answers each of them "cancelled" at once.
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

// dropRequest withdraws a request that the agent cancelled, and answers it "cancelled". It
// sends the editor nothing: the agent's own cancellation is passed to the editor.
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
