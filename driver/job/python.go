package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Python is the python that jobs run in: what the variable PPC_PYTHON names, else that
// of the active environment, else python3 on the path; "" where there is none.
func Python() string {
	if path := os.Getenv("PPC_PYTHON"); path != "" {
		return path
	}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(v); dir != "" {
			if path, err := exec.LookPath(filepath.Join(dir, "bin", "python3")); err == nil {
				return path
			}
		}
	}
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Version is the version of JAX that a python has.
func Version(ctx context.Context, python string) (string, error) {
	const ask = "import importlib.metadata as m; m.version('numpy'); print('JAX', m.version('jax') + ', jaxlib', m.version('jaxlib'))"
	out, err := exec.CommandContext(ctx, python, "-c", ask).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		return "", fmt.Errorf("%s; pip install jax numpy", strings.TrimSpace(lines[len(lines)-1]))
	}
	return strings.TrimSpace(string(out)), err
}
