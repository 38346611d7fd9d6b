//go:build !unix

package driver

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
