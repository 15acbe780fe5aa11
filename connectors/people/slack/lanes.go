package slack

import "sync"

// maxLane is the number of presses of one person that may wait.
const maxLane = 50

// lanes runs the tasks of one person one after another, and those of different people at the same time.
type lanes struct {
	group sync.WaitGroup // all running goroutines: those of the tasks and those of the connections
	mu    sync.Mutex
	tails map[string]*lane
}

type lane struct {
	waiting int
	last    chan struct{} // closed when the last task of this person has ended
}

func newLanes() *lanes { return &lanes{tails: map[string]*lane{}} }

// do runs a task after the earlier tasks of the same person, and does not wait for it. If maxLane
// tasks of this person are waiting, it returns false and does not run the task.
func (l *lanes) do(person string, task func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.tails[person]
	if mine == nil {
		mine = &lane{}
		l.tails[person] = mine
	}
	if mine.waiting >= maxLane {
		return false
	}
	mine.waiting++
	before, done := mine.last, make(chan struct{})
	mine.last = done
	l.group.Go(func() {
		if before != nil {
			<-before
		}
		defer func() {
			close(done)
			l.mu.Lock()
			defer l.mu.Unlock()
			if mine.waiting--; mine.waiting == 0 {
				delete(l.tails, person)
			}
		}()
		task()
	})
	return true
}

func (l *lanes) wait() { l.group.Wait() }
