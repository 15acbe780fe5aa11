//go:build !linux

package testprogram

import "syscall"

// endsWithTests changes nothing, because on this operating system a program may outlive the tests.
func endsWithTests(attributes *syscall.SysProcAttr) *syscall.SysProcAttr { return attributes }
