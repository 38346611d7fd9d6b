//go:build unix

package job

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate keeps signals of the terminal from the process: the parent says when it ends.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks a process to end.
func terminate(p *os.Process) { p.Signal(syscall.SIGTERM) }
