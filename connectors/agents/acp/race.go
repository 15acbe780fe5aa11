package acp

// answer sends the outcome o to the agent and returns true. It returns false if the agent already has
// another answer.
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

// takeDropped takes the other open requests of the session of a, if the agent drops them after the
// denial of a; see take. The caller must answer them with "cancelled".
func (s *sidecar) takeDropped(a *ask) []*ask {
	if !s.cache.denied(a.session) {
		return nil
	}
	return s.takeMatching(errDenied, func(b *ask) bool { return b.session == a.session })
}

// take removes the request a from the open requests and returns true. Only the caller that gets true
// may answer the request. take returns false if another caller was first. If the editor shows the
// request, the sidecar will drop the editor's late answer. If why is not nil, it is the reason for
// which sidecar.run stops waiting for nod and withdraws the request.
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

// showInEditor shows the request in the editor too, while nod asks a person. It does nothing if the
// editor has not answered an earlier request with the same id, because the sidecar could not distinguish
// the two answers.
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

// cancelInEditor makes the editor close its prompt for a request. Some editors ignore that and answer
// later. editorAnswered then drops the answer.
func (s *sidecar) cancelInEditor(a *ask) {
	if !a.shown { // needs no lock, because a.shown does not change after the request is answered
		return
	}
	if line, err := withdrawal(a.id); err == nil {
		s.tellEditor(line)
	}
}

// leaveToEditor passes the request to the editor, unless the editor shows it already. The sidecar then
// passes on the editor's answer like any other line. If the editor has not answered an earlier request
// with the same id, leaveToEditor refuses the request.
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
	case late: // for the same reason as in refuseIfLate
		s.tellAgent(a.id, a.refused())
	default:
		s.tellEditor(a.line)
	}
}

// refuseIfLate checks whether the editor has yet to answer an earlier request with the same id as m. If
// so, it answers m with "cancelled" and returns true, because the sidecar could not distinguish the
// editor's two answers. If not, it returns false, and the caller may pass m to the editor.
func (s *sidecar) refuseIfLate(m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late[m.key] {
		return false
	}
	s.asks.Go(func() { s.tellAgent(m.id, cancelled) })
	return true
}

// editorAnswered handles a response of the editor. It returns true if the caller must pass the response
// on to the agent.
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
		return true // this response answers a request of another kind
	case !a.shown:
		return false // the editor does not show this request, so this response is no answer to it
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

// cancelMatching withdraws the open requests for which the function match returns true, and immediately
// answers them with "cancelled". why is the reason of the withdrawals.
func (s *sidecar) cancelMatching(why error, match func(*ask) bool) {
	taken := s.takeMatching(why, match)
	if len(taken) > 0 {
		s.asks.Go(func() { s.tellCancelled(taken, why != errCancelled) })
	}
}

// tellCancelled answers requests with "cancelled". The caller must have taken them; see take. If
// editorToo is set, tellCancelled also makes the editor close its prompts for them.
func (s *sidecar) tellCancelled(taken []*ask, editorToo bool) {
	for _, a := range taken {
		s.tellAgent(a.id, cancelled)
		if editorToo {
			s.cancelInEditor(a)
		}
	}
}

// takeMatching takes the open requests for which the function match returns true; see take.
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

// dropRequest withdraws a request that the agent has cancelled, and answers it with "cancelled". It
// does not tell the editor, because the agent's cancellation reaches the editor anyway.
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
