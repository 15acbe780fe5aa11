package engine

import (
	"context"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

const (
	// readWithin bounds the time for reading the file that a call writes, because a file system that
	// hangs must not delay the question.
	readWithin = time.Second
	// maxReading bounds the files that are read at the same time, so that a file system that hangs
	// does not use up threads.
	maxReading = 8
)

// isLocal reports whether a request is about the files of this engine's machine.
func (e *base) isLocal(r *schemas.Request) bool {
	return e.Host != "" && (r.Host == "" || r.Host == e.Host)
}

// readFile compares a call with the file that the call writes, for the person who will be asked. The
// result changes only the words of the verdict. If the file cannot be read in time, people see the call
// alone.
func (e *intake) readFile(ctx context.Context, s *askState) (result, error) {
	if s.request.Kind != schemas.KindToolCall || !e.isLocal(&s.request) || !policy.WritesFile(s.rules.call) {
		return result{}, nil
	}
	p := s.rules.policy
	if p == nil { // the rules are unknown, and one of them may forbid reading the file
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
	key, call := s.key(), s.rules.call // a read that ends late must not use the request's state
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
