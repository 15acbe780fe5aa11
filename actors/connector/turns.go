package connector

import (
	"context"
	"sync"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/bus"
)

// turnQueue holds the jobs that wait for a recipient's lane. A lane runs one job at a time, because
// channels limit the messages to each recipient. The sessions of a recipient take turns: a session
// with thousands of prompts delays another session's prompt by only one job. The jobs of a session
// stay in order.
type turnQueue struct {
	mu sync.Mutex
	of map[string]*recipientQueue // the waiting jobs of each recipient
}

type recipientQueue struct {
	jobs     map[string][]actors.Job // the waiting jobs of each session, in order
	sessions []string                // the sessions with waiting jobs, in the order of their turns
}

func (t *turnQueue) put(recipient, session string, j actors.Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]*recipientQueue{}
	}
	l := t.of[recipient]
	if l == nil {
		l = &recipientQueue{jobs: map[string][]actors.Job{}}
		t.of[recipient] = l
	}
	if len(l.jobs[session]) == 0 {
		l.sessions = append(l.sessions, session)
	}
	l.jobs[session] = append(l.jobs[session], j)
}

// supersede compares the job j with a waiting version of the same prompt. It keeps the newer version,
// so that a slow channel shows no outdated version, and returns the delivery of the older version. If
// the result found is false, no version waits, and the caller must queue j.
func (t *turnQueue) supersede(j promptJob) (needless *bus.Delivery, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.of[j.prompt.Recipient]
	if q == nil {
		return nil, false
	}
	waiting := q.jobs[j.prompt.SessionID]
	for i, w := range waiting {
		old, isPrompt := w.(promptJob)
		switch {
		case !isPrompt || old.prompt.PendingID != j.prompt.PendingID:
		case old.prompt.Revision < j.prompt.Revision:
			waiting[i] = j
			return old.delivery, true
		case old.prompt.Revision > j.prompt.Revision:
			return j.delivery, true
		}
	}
	return nil, false
}

// next removes and returns a recipient's next job. The recipient must have a job.
func (t *turnQueue) next(recipient string) actors.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of[recipient]
	session := l.sessions[0]
	l.sessions = l.sessions[1:]
	jobs := l.jobs[session]
	if len(jobs) > 1 {
		l.jobs[session] = jobs[1:]
		l.sessions = append(l.sessions, session)
	} else if delete(l.jobs, session); len(l.jobs) == 0 {
		delete(t.of, recipient)
	}
	return jobs[0]
}

// turnJob runs a recipient's next job. For each waiting job, one turnJob is sent to the recipient's
// lane.
type turnJob struct {
	turns     *turnQueue
	recipient string
	job       actors.Job
}

func (t *turnJob) Run(ctx context.Context) {
	t.job = t.turns.next(t.recipient)
	t.job.Run(ctx)
}

func (t *turnJob) Failed(reason any) { t.job.Failed(reason) }
