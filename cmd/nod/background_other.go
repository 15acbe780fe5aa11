//go:build !unix

package main

import "syscall"

// ownSession returns the default attributes, because only Unix has sessions of processes.
func ownSession() *syscall.SysProcAttr { return nil }
