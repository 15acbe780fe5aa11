package engine

import (
	"context"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

const (
	// readWithin bounds the time for reading the file that a call writes. A file system that hangs
	// must not hold the question back.
	readWithin = time.Second
	// maxReading bounds the files that are read at the same time, so that a file system that hangs
	// does not use up threads.
	maxReading = 8
)

// isLocal reports whether a request is about the files of this engine's machine.
func (e *base) isLocal(r *schemas.Request) bool {
	return e.Host != "" && (r.Host == "" || r.Host == e.Host)
}

// readFile compares a call with the file that it writes, because a person will be asked. What it
// finds is for people and changes only the words of the verdict. Without it they see the call alone.
func (e *intake) readFile(ctx context.Context, s *askState) (result, error) {
	if s.request.Kind != schemas.KindToolCall || !e.isLocal(&s.request) || !policy.WritesFile(s.rules.call) {
		return result{}, nil
	}
	p := s.rules.policy
	if p == nil { // the settings may be old, or the project's rules cannot be read: one of them may forbid the reading
		s.plan.onDisk = &schemas.DiskFile{Note: "nod is not sure of its rules"}
		return result{}, nil
	}
	s.plan.onDisk = &schemas.DiskFile{Note: policy.NoTime}
	select {
	case e.reading <- struct{}{}:
	default:
		return result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	key, call := s.key(), s.rules.call // a late read must not use the state of the request
	found := make(chan policy.Written, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				e.Log.Error("engine: comparing a call with its file failed", "key", key, "panic", r)
				found <- policy.Written{}
			}
			<-e.reading
		}()
		found <- policy.ThisDisk{}.ReadWritten(ctx, p, call)
	}()
	select {
	case <-ctx.Done():
		return result{}, nil
	case w := <-found:
		s.plan.onDisk = w.File
		v := s.verdict
		w.Describe(&v)
		return result{verdict: v}, nil
	}
}
