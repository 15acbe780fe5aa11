package inner

import (
	"syscall"
	"unsafe"
)

const (
	prSetDumpable    = 4
	prCapBoundDrop   = 24
	prSetSeccomp     = 22
	prSetSecureBits  = 28
	prSetSubreaper   = 36
	prSetNoNewPrivs  = 38
	prCapAmbient     = 47
	prAmbientClear   = 4
	seccompFilter    = 2
	capabilityFormat = 0x20080522 // _LINUX_CAPABILITY_VERSION_3
	noRootSecured    = 0x2f       // root has no capabilities merely because of its user id, and the command cannot change this
	landlockBeneath  = 1
)

// restrict gives up all rights that the command must not have. It restricts only the calling thread.
// No other thread needs it, because the command starts from this thread.
func restrict(p *Plan) *failure {
	if err := prctl(prSetDumpable, 0, 0); err != nil { // the command must not read the memory of this process
		return fail("hide the inner process", err)
	}
	if !p.Namespaces {
		if err := prctl(prSetSubreaper, 1, 0); err != nil {
			return fail("adopt lost processes", err)
		}
	}
	if err := dropCapabilities(p.Namespaces); err != nil {
		return fail("drop capabilities", err)
	}
	if err := prctl(prSetNoNewPrivs, 1, 0); err != nil {
		return fail("give up new privileges", err)
	}
	for _, l := range p.Limits {
		if err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Value, Max: l.Value}); err != nil {
			return fail("limit resources", err)
		}
	}
	if p.Dir != "" {
		if err := syscall.Chdir(p.Dir); err != nil {
			return fail("enter "+p.Dir, err)
		}
	}
	if f := landlock(p); f != nil {
		return f
	}
	program := struct {
		length uint16
		filter *byte
	}{uint16(len(p.Filter) / 8), unsafe.SliceData(p.Filter)}
	if len(p.Filter) == 0 {
		return fail("filter system calls", syscall.EINVAL)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, seccompFilter, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fail("filter system calls", errno)
	}
	return nil
}

func prctl(option, a, b uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, a, b, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// dropCapabilities drops all capabilities for ever. It leaves out the bounding set if there are
// no namespaces and the user is not root, because the kernel refuses the change and the user has
// no capabilities.
func dropCapabilities(namespaces bool) error {
	if namespaces || syscall.Geteuid() == 0 || syscall.Getuid() == 0 {
		for power := uintptr(0); ; power++ {
			err := prctl(prCapBoundDrop, power, 0)
			if err == syscall.EINVAL {
				break // the kernel has no capability with this number
			}
			if err != nil {
				return err
			}
		}
		if err := prctl(prSetSecureBits, noRootSecured, 0); err != nil {
			return err
		}
	}
	if err := prctl(prCapAmbient, prAmbientClear, 0); err != nil {
		return err
	}
	head := struct {
		version uint32
		pid     int32
	}{version: capabilityFormat}
	var none [6]uint32
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return errno
	}
	return nil
}

func landlock(p *Plan) *failure {
	if p.Handled == 0 && p.Scoped == 0 {
		return nil
	}
	attr := [3]uint64{p.Handled, 0, p.Scoped}
	size := unsafe.Sizeof(attr)
	if p.Scoped == 0 { // older kernels know only the first field of the structure
		size = 8
	}
	set, _, errno := syscall.Syscall(sysLandlockNew, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fail("make Landlock's rules", errno)
	}
	defer syscall.Close(int(set))
	for _, r := range p.Rules {
		fd, err := openExactly(r.Path, r.Dev, r.Ino)
		if err != nil {
			return fail("open "+r.Path, err)
		}
		var rule [12]byte // struct landlock_path_beneath_attr, which has no padding
		*(*uint64)(unsafe.Pointer(&rule[0])) = r.Access
		*(*int32)(unsafe.Pointer(&rule[8])) = int32(fd)
		_, _, errno := syscall.Syscall6(sysLandlockAdd, set, landlockBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		syscall.Close(fd)
		if errno != 0 {
			return fail("allow "+r.Path, errno)
		}
	}
	if _, _, errno := syscall.RawSyscall(sysLandlockApply, set, 0, 0); errno != 0 {
		return fail("apply Landlock's rules", errno)
	}
	return nil
}
