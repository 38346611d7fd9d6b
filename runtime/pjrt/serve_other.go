//go:build !((linux || darwin) && (amd64 || arm64))

package pjrt

import (
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

func isolate(*exec.Cmd) {}

// Serve does the work of a worker's child and does not return, where this process
// is one; otherwise it does nothing. On this system no plugin is loaded.
func Serve() {
	if os.Getenv(workerEnv) == "" {
		return
	}
	var q request
	if gob.NewDecoder(os.Stdin).Decode(&q) == nil {
		gob.NewEncoder(os.Stdout).Encode(&reply{Other: fmt.Sprintf("%s: plugins are not loaded on %s/%s", q.Open.Path, runtime.GOOS, runtime.GOARCH)})
	}
	os.Exit(0)
}
