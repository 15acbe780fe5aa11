package testprogram

import "syscall"

// endsWithTests changes a program's attributes, which may be nil, so that the kernel kills the
// program if the tests end first.
func endsWithTests(attributes *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attributes == nil {
		attributes = &syscall.SysProcAttr{}
	}
	attributes.Pdeathsig = syscall.SIGKILL
	return attributes
}
