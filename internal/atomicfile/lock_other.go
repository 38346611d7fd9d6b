//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package atomicfile

import "os"

// locks says that nothing tells a living writer from one that was killed:
// temporary files that were left behind stay.
const locks = false

func lock(*os.File) (bool, error) { return true, nil }
