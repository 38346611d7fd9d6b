package pjrt

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Platform is a kind of devices whose plugin is looked for by well-known names.
type Platform struct {
	Name     string
	files    []string // below a folder of Python packages, as patterns
	variable string   // an environment variable with the plugin's path
	Install  string   // how to get one
}

// Platforms are those that are known.
var Platforms = []*Platform{
	{Name: "cpu", files: []string{"xla_plugins/xla_cpu_pjrt/*.so", "lammps_jax_pjrt_cpu/*.so", "jax_plugins/xla_cpu*/*.so"},
		Install: "pip install xla-cpu-pjrt"},
	{Name: "cuda", files: []string{"jax_plugins/xla_cuda*/xla_cuda_plugin.so"},
		Install: "pip install jax-cuda13-pjrt"},
	{Name: "tpu", files: []string{"libtpu/libtpu.so"}, variable: "TPU_LIBRARY_PATH",
		Install: "pip install libtpu"},
}

// PlatformOf is the platform called name; nil if there is none.
func PlatformOf(name string) *Platform {
	i := slices.IndexFunc(Platforms, func(p *Platform) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return Platforms[i]
}

// PlatformNames are the names of the platforms.
func PlatformNames() []string {
	var names []string
	for _, p := range Platforms {
		names = append(names, p.Name)
	}
	return names
}

// Find are the plugins of p, those that are named first: by the variable
// PJRT_NAMES_AND_LIBRARY_PATHS, as JAX reads it (name:path,…), by the platform's own,
// then in the folders of Python packages.
func (p *Platform) Find() []string {
	var out []string
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	for entry := range strings.SplitSeq(os.Getenv("PJRT_NAMES_AND_LIBRARY_PATHS"), ",") {
		if name, path, ok := strings.Cut(entry, ":"); ok && name == p.Name {
			add(path)
		}
	}
	if p.variable != "" {
		add(os.Getenv(p.variable))
	}
	for _, dir := range packageFolders() {
		for _, pattern := range p.files {
			files, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are right
			for _, f := range files {
				add(f)
			}
		}
	}
	return out
}

// packageFolders are the folders of Python packages: of the python that PPC_PYTHON names, of the active environment, of
// the python that the shell finds, of the user and of the system.
func packageFolders() []string {
	var prefixes []string
	if python := os.Getenv("PPC_PYTHON"); python != "" {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
	}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(v); dir != "" {
			prefixes = append(prefixes, dir)
		}
	}
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(path)))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	prefixes = append(prefixes, "/usr/local", "/usr")
	var out []string
	for _, prefix := range prefixes {
		for _, pattern := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages"} {
			dirs, _ := filepath.Glob(filepath.Join(prefix, pattern))
			for _, d := range dirs {
				if !slices.Contains(out, d) {
					out = append(out, d)
				}
			}
		}
	}
	return out
}
