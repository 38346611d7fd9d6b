package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ppc/internal/shared"
	"ppc/runtime/pjrt"
)

// srun starts a command in two processes of four devices, as SLURM does on two nodes;
// sbatch and ssh are of this machine too.
const (
	fakeSrun = `#!/bin/sh
export SLURM_NTASKS=2 SLURM_STEP_NODELIST=localhost SLURM_STEP_NUM_NODES=2 SLURM_LOCALID=0
SLURM_PROCID=1 "$@" --cpu-devices 4 &
SLURM_PROCID=0 "$@" --cpu-devices 4 && wait $!
`
	fakeSbatch = `#!/bin/sh
SLURM_JOB_ID=$$ SLURM_SUBMIT_DIR=. exec sh "$@"
`
)

// TestWalkthrough: every command of docs/clusters.md runs, in its form for this machine:
// clusters of two processes, and no chips.
func TestWalkthrough(t *testing.T) {
	if shared.Setting(t, "PPC_ENGINES") != "all" {
		t.Skip("PPC_ENGINES is not all")
	}
	shared.CPUPlugin(t)
	root, bin, dir := shared.Root(t), t.TempDir(), t.TempDir()
	python, err := filepath.Abs(shared.Setting(t, "PPC_PYTHON"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"srun": fakeSrun, "sbatch": fakeSbatch, "python3": "#!/bin/sh\nexec " + python + " \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "ppc"), "ppc/cmd/ppc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs", "clusters.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("VIRTUAL_ENV", filepath.Dir(filepath.Dir(python)))
	for _, block := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(string(doc), -1) {
		script := commandsOf(block[1])
		if script == "" || strings.Contains(script, "--topology") && len(pjrt.PlatformOf("tpu").Find()) == 0 {
			continue
		}
		begin := time.Now()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script+"wait\n")
		cmd.Dir = dir
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("%s%v\n%s", script, err, out.String())
		}
		t.Logf("%v\n%s%s", time.Since(begin).Round(time.Second), script, out.String())
	}
}

// commandsOf are the commands that a block shows, but for what is installed.
func commandsOf(block string) string {
	var script strings.Builder
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok && !strings.HasPrefix(command, "pip install ") {
			script.WriteString(command)
		}
	}
	return script.String()
}
