package driver

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// A run that takes more memory than there is ends before it begins, with both
// numbers; with as much as it takes, it runs.
func TestRunFits(t *testing.T) {
	const global = `module { sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x1024xf32> {
  %r = stablehlo.tanh %a : tensor<4x1024xf32>
  return %r : tensor<4x1024xf32>
} }`
	const local = `HloModule m, num_partitions=2
ENTRY main {
  a = f32[2,1024] parameter(0)
  ROOT r = f32[2,1024] tanh(a)
}`
	const wide = `func.func @main(%a: tensor<1024xcomplex<f32>>) -> tensor<1024xcomplex<f32>> {
  %r = stablehlo.fft %a, type = FFT, length = [1024] : (tensor<1024xcomplex<f32>>) -> tensor<1024xcomplex<f32>>
  return %r : tensor<1024xcomplex<f32>>
}`
	for _, c := range []struct {
		file, text string
		takes      int
		want       string
	}{
		// An FFT computes in complex128, of its argument and of its result.
		{"fft.mlir", wide, 48 << 10, "a run takes 48.0 KiB of memory, 48.0 KiB is available: 40.0 KiB at the peak of 1 device and 8.0 KiB of arguments; a smaller program fits"},
		// The argument as it is read and once in shards; each device's shard of the
		// result.
		{"a.mlir", global, 48 << 10, "a run takes 48.0 KiB of memory, 48.0 KiB is available: 16.0 KiB at the peak of 2 devices and 32.0 KiB of arguments; a smaller program fits"},
		// The argument as it is read has the devices' parts.
		{"a.hlo", local, 32 << 10, "a run takes 32.0 KiB of memory, 32.0 KiB is available: 16.0 KiB at the peak of 2 devices and 16.0 KiB of arguments; a smaller program fits"},
	} {
		src := &Source{File: write(t, c.file, c.text)}
		_, err := Run(t.Context(), src, RunOptions{Memory: c.takes - 1})
		if err == nil || !strings.Contains(err.Error(), c.want) || ExitCode(err) != ExitInput {
			t.Errorf("%s: %v, want a refusal with %q", c.file, err, c.want)
		}
		if _, err := Run(t.Context(), src, RunOptions{Memory: c.takes}); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
	}
}

// Sizes that no machine has are refused by what the system says.
func TestRunHuge(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the system does not say
	}
	src := &Source{File: write(t, "tiny.pp", tiny), Set: []string{"axes.embed=1048576", "axes.mlp=1048576"}}
	_, err := Run(t.Context(), src, RunOptions{})
	if want := "a run takes 240.0 TiB of memory"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "smaller sizes fit (--set axes.NAME=…)") {
		t.Errorf("%v, want a refusal with %q", err, want)
	}
}

// A reference that needs more than a run, which takes microbatches one after the other, is
// refused before the run.
func TestReferenceFits(t *testing.T) {
	src := &Source{File: "../examples/llama.pp", Set: []string{"axes.batch=16384", "pipeline.microbatches=64"}}
	steps := 0
	_, err := Run(t.Context(), src, RunOptions{Memory: 2 << 30, Steps: &steps, Check: true})
	for _, want := range []string{"reference: it takes 3.0 GiB of memory, 2.0 GiB is available", "(--set axes.NAME=…)"} {
		if err == nil || !strings.Contains(err.Error(), want) || ExitCode(err) != ExitInput {
			t.Errorf("%v, want a refusal with %q", err, want)
		}
	}
}

// What is available is the least of what the machine and the control groups
// around the process leave.
func TestAvailableMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := file("MemTotal:       2048 kB\nMemFree:        10 kB\nMemAvailable:   1024 kB\n")
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want int
	}{
		{"nothing is known", fstest.MapFS{}, math.MaxInt},
		{"the machine", fstest.MapFS{"proc/meminfo": machine}, 1024 << 10},
		{"no limit", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, 1024 << 10},
		{"limits of the process", fstest.MapFS{"proc/meminfo": machine, "proc/self/status": file("VmSize:\t 100 kB\nVmData:\t 50 kB\n"),
			"proc/self/limits": file("Limit                     Soft Limit           Hard Limit           Units     \nMax data size             131072               unlimited            bytes     \nMax address space         unlimited            unlimited            bytes     \n")}, 131072 - 50<<10},
		{"address space", fstest.MapFS{"proc/self/status": file("VmSize:\t 100 kB\nVmData:\t 50 kB\n"), "proc/self/limits": file("Max address space         102401               unlimited            bytes     \n")}, 1},
		{"a group around", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/memory.max": file("5000\n"),
			"sys/fs/cgroup/a/memory.stat": file("anon 2000\nfile 3000\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n")}, 3000},
		{"version 1", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("4:cpu,memory:/a\n3:pids:/\n"), "sys/fs/cgroup/memory/a/memory.limit_in_bytes": file("5000\n"),
			"sys/fs/cgroup/memory/a/memory.stat": file("rss 1\ntotal_rss 4000\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 1000},
	} {
		if got := availableMemory(c.root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}
