package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// useHugePages asks the system for huge pages behind m, where it has such. What m contains
// stays; a system that refuses changes nothing.
func useHugePages(m Mem) {
	begin := -uintptr(unsafe.Pointer(unsafe.SliceData(m))) % hugePage // to the first page
	if n := uintptr(len(m)); n >= begin+hugePage {
		_ = unix.Madvise(m[begin:begin+(n-begin)/hugePage*hugePage], unix.MADV_HUGEPAGE)
	}
}
