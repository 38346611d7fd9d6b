// Package cputime says how long the cores have worked for this process.
package cputime

import (
	"syscall"
	"time"
)

// Now is what the process has had of all cores.
func Now() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
