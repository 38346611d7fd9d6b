package main

import (
	"os"
	"syscall"
)

// closedAtStart reports whether the process was started with f, a standard
// stream, closed. Go's runtime then opens /dev/null there for reading and
// writing, before any code of the program runs. Output that is discarded on
// purpose goes to a /dev/null that is opened for writing only, or that several
// streams share.
func closedAtStart(f *os.File) bool {
	fd := f.Fd()
	if fd > 2 {
		return false
	}
	const devNull = 1<<8 | 3
	var st syscall.Stat_t
	if syscall.Fstat(int(fd), &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFCHR || st.Rdev != devNull {
		return false
	}
	flags, ok := fcntl(fd, syscall.F_GETFL, 0)
	return ok && flags&syscall.O_ACCMODE == syscall.O_RDWR && !sameOpenFile(fd, flags)
}

// sameOpenFile reports whether another standard stream is the same open file, whose
// flags are one.
func sameOpenFile(fd, flags uintptr) bool {
	if _, ok := fcntl(fd, syscall.F_SETFL, flags^syscall.O_APPEND); !ok {
		return false
	}
	defer fcntl(fd, syscall.F_SETFL, flags)
	for other := range uintptr(3) {
		var st syscall.Stat_t
		if other == fd || syscall.Fstat(int(other), &st) != nil {
			continue
		}
		before, ok := fcntl(other, syscall.F_GETFL, 0)
		if ok && before == flags^syscall.O_APPEND && flips(fd, other, flags) {
			return true
		}
	}
	return false
}

// flips reports whether the flags of other follow when those of fd are set.
func flips(fd, other, flags uintptr) bool {
	fcntl(fd, syscall.F_SETFL, flags)
	now, ok := fcntl(other, syscall.F_GETFL, 0)
	return ok && now == flags
}

func fcntl(fd, command, value uintptr) (uintptr, bool) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, command, value)
	return n, errno == 0
}
