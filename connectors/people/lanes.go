package people

import "sync"

// maxLane is the largest number of presses of one person that wait.
const maxLane = 50

// Lanes runs the tasks of one person one after another, and tasks of different people at the same time.
// It is safe for concurrent use.
type Lanes struct {
	group sync.WaitGroup // all running tasks, also those of the method Go
	mu    sync.Mutex
	tails map[string]*lane
}

type lane struct {
	waiting int
	last    chan struct{} // closed when the last task of the person has ended
}

// NewLanes returns lanes without tasks.
func NewLanes() *Lanes { return &Lanes{tails: map[string]*lane{}} }

// Go runs a task at once, in parallel with all other tasks.
func (l *Lanes) Go(task func()) { l.group.Go(task) }

// Do runs a task after the earlier tasks of the same person, and returns without waiting for the task. If
// maxLane tasks of this person are waiting, it returns false and does not run the task.
func (l *Lanes) Do(person string, task func()) bool {
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

// Wait returns when all tasks have ended.
func (l *Lanes) Wait() { l.group.Wait() }
