//go:build unix

package main

import "syscall"

// ownSession returns the attributes of a process that gets no signals of this terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
