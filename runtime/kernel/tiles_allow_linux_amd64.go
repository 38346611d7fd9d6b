package kernel

import "syscall"

// allowTiles asks the system to save the tiles of the matrix unit with a thread, which it does for processes that
// ask, and reports whether it does.
func allowTiles() bool {
	const requestPermission, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, err := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return err == 0
}
