package acp

// answer sends o to the agent and returns true, unless the agent got another answer first.
func (s *sidecar) answer(a *ask, o outcome) bool {
	if !s.take(a, nil) {
		return false
	}
	var others []*ask
	if !o.allows {
		others = s.takeDropped(a)
	}
	s.tellAgent(a.id, o)
	s.cancelInEditor(a)
	s.tellCancelled(others, true)
	return true
}

// takeDropped takes (see take) the other open requests of a's session, if the agent drops them after
// the denial of a. The caller must answer them with "cancelled".
func (s *sidecar) takeDropped(a *ask) []*ask {
	if !s.cache.denied(a.session) {
		return nil
	}
	return s.takeMatching(errDenied, func(b *ask) bool { return b.session == a.session })
}

// take removes a request from the open requests and returns true. Only the caller that gets true may
// answer the request. take returns false if another caller removed the request first. If the editor
// shows the request, the sidecar will drop the editor's late answer. If why is not nil, sidecar.run
// stops waiting for nod and withdraws the request, with why as the reason.
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

// showInEditor passes the agent's request to the editor too, while nod asks a person. It does nothing
// if the editor has not answered an earlier request with the same id, because the sidecar could not
// tell the two answers apart.
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

// cancelInEditor tells the editor to close its prompt for a request. Some editors ignore this message
// and answer later. editorAnswered drops such a late answer.
func (s *sidecar) cancelInEditor(a *ask) {
	if !a.shown { // safe without the lock, because a.shown changes only while the request is open
		return
	}
	if line, err := withdrawal(a.id); err == nil {
		s.tellEditor(line)
	}
}

// leaveToEditor passes the request to the editor, unless the editor shows it already. The sidecar then
// passes the editor's answer to the agent like any other line. If the editor has not answered an
// earlier request with the same id, leaveToEditor refuses the request.
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
	case late: // refuseIfLate says why
		s.tellAgent(a.id, a.refused())
	default:
		s.tellEditor(a.line)
	}
}

// refuseIfLate refuses the request m if the editor has not answered an earlier request with the
// same id. It then answers m with "cancelled" and returns true, because the sidecar could not tell
// the editor's answers to the two requests apart. Otherwise it returns false, and the caller may
// pass m to the editor.
func (s *sidecar) refuseIfLate(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late[m.key] {
		return false
	}
	s.asks.Go(func() { s.tellAgent(m.id, cancelled) })
	return true
}

// editorAnswered handles a response of the editor. It reports whether the caller must pass the
// response to the agent.
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
		return true // the editor responds to a request that is not about a permission
	case !a.shown:
		return false // the editor does not show this request, so the response cannot be an answer to it
	case m.failed: // the editor could not show the request, but nod still asks a person
		a.shown = false
		return false
	}
	delete(s.open, m.key)
	a.stop(errInEditor)
	if a.deniedBy(m) {
		s.asks.Go(func() { s.tellCancelled(s.takeDropped(a), true) })
	}
	return true
}

// cancelMatching withdraws the open requests for which match returns true, and answers each of them
// with "cancelled" at once.
func (s *sidecar) cancelMatching(why error, match func(*ask) bool) {
	taken := s.takeMatching(why, match)
	if len(taken) > 0 {
		s.asks.Go(func() { s.tellCancelled(taken, why != errCancelled) })
	}
}

// tellCancelled replies "cancelled" to the requests that its caller has taken. If editorToo is set,
// it also makes the editor close its prompts for them.
func (s *sidecar) tellCancelled(taken []*ask, editorToo bool) {
	for _, a := range taken {
		s.tellAgent(a.id, cancelled)
		if editorToo {
			s.cancelInEditor(a)
		}
	}
}

// takeMatching takes the open requests for which match returns true; see take.
func (s *sidecar) takeMatching(why error, match func(*ask) bool) (taken []*ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.open {
		if match(a) {
			s.takeLocked(a, why)
			taken = append(taken, a)
		}
	}
	return taken
}

// dropRequest withdraws a request that the agent cancelled, and answers it with "cancelled". It sends
// the editor nothing, because the editor gets the agent's own cancellation.
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
