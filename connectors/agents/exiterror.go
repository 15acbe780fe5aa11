package agents

// The exit codes of nod if it does not run the command. They are the same as those of the program env
// and of shells.
const (
	CodeRefused  = 125 // nod refused to run the command, or could not contain it
	CodeCannot   = 126 // the program exists but cannot be executed
	CodeNotFound = 127 // the program does not exist
)

// ExitError is the reason why a command did not run.
type ExitError struct {
	Code int // the exit code for the caller's process
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }
