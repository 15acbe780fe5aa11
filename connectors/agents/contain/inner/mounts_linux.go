package inner

import (
	"syscall"
	"unsafe"
)

// The numbers of system calls that package syscall lacks. They are the same on all architectures.
const (
	sysOpenTree      = 428
	sysMoveMount     = 429
	sysCloseRange    = 436
	sysOpenat2       = 437
	sysMountSetattr  = 442
	sysLandlockNew   = 444
	sysLandlockAdd   = 445
	sysLandlockApply = 446
)

const (
	oPath             = 0x200000
	atFdcwd           = -100
	atEmptyPath       = 0x1000
	atRecursive       = 0x8000
	openTreeClone     = 1
	openTreeCloexec   = syscall.O_CLOEXEC
	moveFromEmpty     = 0x04
	moveToEmpty       = 0x40
	noMagicLinks      = 0x02
	noSymlinks        = 0x04
	closeRangeCloexec = 4
)

// The attributes of a mount.
const (
	ReadOnly = 0x1
	NoSuid   = 0x2
	NoDev    = 0x4
	NoExec   = 0x8
)

// Old is the mount point of the host's file system while the inner process executes the steps. Own
// is a directory for files of the inner process.
const (
	Old = "/.old"
	Own = "/.own"
)

// enter builds the command's file system, and makes it the root directory of this process.
func enter(p *Plan) *failure {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return fail("keep mounts private", err)
	}
	if err := syscall.Mount("tmpfs", "/tmp", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0755,size=16m"); err != nil {
		return fail("mount the root", err)
	}
	if err := syscall.Chdir("/tmp"); err != nil {
		return fail("enter the root", err)
	}
	for _, dir := range []string{Old[1:], Own[1:]} {
		if err := syscall.Mkdir(dir, 0o700); err != nil {
			return fail("make "+dir, err)
		}
	}
	if err := syscall.PivotRoot(".", Old[1:]); err != nil {
		return fail("change the root", err)
	}
	if err := syscall.Chdir("/"); err != nil {
		return fail("enter the root", err)
	}
	if err := syscall.Mount("tmpfs", Own, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0700"); err != nil {
		return fail("mount "+Own, err)
	}
	for i := range p.Steps {
		if f := p.Steps[i].do(); f != nil {
			return f
		}
	}
	for _, dir := range []string{Own, Old} {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			return fail("unmount "+dir, err)
		}
		if err := syscall.Rmdir(dir); err != nil {
			return fail("remove "+dir, err)
		}
	}
	if err := setAttr(atFdcwd, "/", 0, ReadOnly|NoSuid|NoDev); err != nil {
		return fail("make the root read-only", err)
	}
	return network(p)
}

func (s *Step) do() *failure {
	err := s.doIn()
	if back := syscall.Chdir("/"); err == nil {
		err = back
	}
	if err != nil {
		return fail("set up "+s.Path, err)
	}
	return nil
}

// doIn executes a step. It follows no symbolic link in the step's Path, because an earlier command of
// the session may have put links to Old into /tmp.
func (s *Step) doIn() error {
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV
	dir, name := split(s.Path)
	switch s.Kind {
	case StepBind:
		return bind(Old+s.Source, s.Path, s.Attr, s.Dev, s.Ino, 0, 0)
	case StepCover:
		return bind(s.Source, s.Path, s.Attr, 0, 0, s.Dev, s.Ino)
	case StepDir, StepFile, StepLink:
		if err := enterDir(dir); err != nil {
			return err
		}
	default:
		if err := enterDir(s.Path); err != nil {
			return err
		}
	}
	switch s.Kind {
	case StepDir:
		return ignoreExisting(syscall.Mkdir(name, uint32(s.Attr)))
	case StepFile:
		return writeFile(name, s.Data)
	case StepLink:
		return syscall.Symlink(s.Data, name)
	case StepTmpfs:
		return syscall.Mount("tmpfs", ".", "tmpfs", flags, s.Data)
	case StepPts:
		return syscall.Mount("devpts", ".", "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	case StepProc:
		if err := syscall.Mount("proc", ".", "proc", flags|syscall.MS_NOEXEC, ""); err != nil {
			return err
		}
		return setAttr(atFdcwd, s.Path, 0, ReadOnly) // read-only, because root could otherwise change the kernel parameters of the machine
	case StepOverlay:
		return s.overlay()
	}
	return syscall.EINVAL
}

// split returns the directory and the name of an absolute path.
func split(path string) (dir, name string) {
	i := len(path) - 1
	for i > 0 && path[i] != '/' {
		i--
	}
	return path[:max(i, 1)], path[i+1:]
}

func enterDir(path string) error {
	fd, err := openExactly(path, 0, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return syscall.Fchdir(fd)
}

func ignoreExisting(err error) error {
	if err == syscall.EEXIST {
		return nil
	}
	return err
}

// overlay mounts an overlay file system on the current directory.
func (s *Step) overlay() error {
	upper, work := s.Data+"/changes", s.Data+"/work"
	for _, dir := range []string{s.Data, upper, work} {
		if err := ignoreExisting(syscall.Mkdir(dir, 0o700)); err != nil {
			return err
		}
	}
	options := "userxattr,lowerdir=" + Old + s.Source + ",upperdir=" + upper + ",workdir=" + work
	if syscall.Mount("overlay", ".", "overlay", syscall.MS_NOSUID|syscall.MS_NODEV, options) == nil {
		return nil
	}
	return bind(Old+s.Source, s.Path, s.Attr|ReadOnly, 0, 0, 0, 0)
}

// bind mounts source at path. The device and inode numbers say which files source and path must be; 0 means
// any file. They are necessary because another process could rename a file during the call.
func bind(source, path string, attr, sourceDev, sourceIno, pathDev, pathIno uint64) error {
	from, err := openExactly(source, sourceDev, sourceIno)
	if err != nil {
		return err
	}
	defer syscall.Close(from)
	to, err := openExactly(path, pathDev, pathIno)
	if err != nil {
		return err
	}
	defer syscall.Close(to)
	empty := pointer("")
	tree, _, errno := syscall.Syscall(sysOpenTree, uintptr(from), uintptr(empty), atEmptyPath|atRecursive|openTreeClone|openTreeCloexec)
	if errno != 0 {
		return errno
	}
	defer syscall.Close(int(tree))
	if err := setAttr(int(tree), "", atEmptyPath|atRecursive, attr); err != nil {
		return err
	}
	_, _, errno = syscall.Syscall6(sysMoveMount, tree, uintptr(empty), uintptr(to), uintptr(empty), moveFromEmpty|moveToEmpty, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// openExactly opens a path without following symbolic links. If ino is not 0, the path must be the
// file with this device and inode number.
func openExactly(path string, dev, ino uint64) (int, error) {
	how := [3]uint64{oPath | syscall.O_CLOEXEC, 0, noSymlinks | noMagicLinks}
	cwd := atFdcwd
	fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(cwd), uintptr(pointer(path)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	if ino == 0 {
		return int(fd), nil
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(fd), &st); err != nil || uint64(st.Dev) != dev || st.Ino != ino { //nolint:unconvert // Dev has only 32 bits on some architectures
		syscall.Close(int(fd))
		return -1, syscall.ESTALE
	}
	return int(fd), nil
}

func setAttr(dir int, path string, flags, set uint64) error {
	attr := [4]uint64{set}
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(dir), uintptr(pointer(path)), uintptr(flags), uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// writeFile creates a file with this content. If the file exists, writeFile returns an error. Only
// an empty file may exist already, because it serves as a mount point.
func writeFile(path, content string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644)
	if err == syscall.EEXIST && content == "" {
		return nil
	}
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	for b := []byte(content); len(b) > 0; {
		n, err := syscall.Write(fd, b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// network starts the loopback interface. If p.Listen is set, it also opens the sockets for the
// proxy's clients and for DNS queries, and sends them to nod.
func network(p *Plan) *failure {
	if p.ShareNet {
		return nil
	}
	sock, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail("start the loopback interface", err)
	}
	defer syscall.Close(sock)
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{[16]byte{'l', 'o'}, syscall.IFF_UP | syscall.IFF_RUNNING, [22]byte{}}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(sock), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fail("start the loopback interface", errno)
	}
	if !p.Listen {
		return nil
	}
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail("listen for the proxy", err)
	}
	defer syscall.Close(listener)
	if err := syscall.Bind(listener, &syscall.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fail("listen for the proxy", err)
	}
	if err := syscall.Listen(listener, 128); err != nil {
		return fail("listen for the proxy", err)
	}
	sockets := []int{listener}
	if names, err := nameSocket(); err == nil { // without this socket, only the notes of looked-up names are missing
		defer syscall.Close(names)
		sockets = append(sockets, names)
	}
	if err := syscall.Sendmsg(Control, Message{Kind: Listener}.Encode(), syscall.UnixRights(sockets...), nil, 0); err != nil {
		return fail("hand over the proxy's socket", err)
	}
	return nil
}

// nameSocket returns a socket at the address of the name server in the command's resolv.conf.
func nameSocket() (int, error) {
	names, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := syscall.Bind(names, &syscall.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		syscall.Close(names)
		return -1, err
	}
	return names, nil
}
