//go:build (linux || darwin) && (amd64 || arm64)

package pjrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"ppc/internal/shared"
	"ppc/ir"
)

func TestMain(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

func start(t *testing.T, devices int) *Worker {
	t.Helper()
	w, err := Start(t.Context(), shared.CPUPlugin(t), "", Options{"cpu_device_count": devices})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// sums adds up over all devices, and adds the second argument.
const sums = `module @sums attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<i1>) {
    %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %3 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    %1 = stablehlo.add %0, %b : tensor<2xf32>
    %2 = stablehlo.constant dense<true> : tensor<i1>
    return %1, %2 : tensor<2xf32>, tensor<i1>
  }
}`

var sumTypes = []*ir.Type{ir.Tensor(ir.F32, 2), ir.Tensor(ir.I1)}

func TestRun(t *testing.T) {
	w := start(t, 4)
	if w.Info.Platform != "cpu" || w.Info.Devices != 4 {
		t.Errorf("%+v, want 4 devices of the platform cpu", w.Info)
	}
	exe, err := w.Compile(t.Context(), sums, 4, CompileOptions{Replicas: 4, Partitions: 1}, sumTypes)
	if err != nil {
		t.Fatal(err)
	}
	if exe.Devices() != 4 {
		t.Errorf("%d devices, want 4", exe.Devices())
	}
	one := ir.SplatOf(sumTypes[0], 1)
	args := make([][]*ir.Literal, 4)
	for d := range args {
		args[d] = []*ir.Literal{ir.Floats64(ir.Tensor(ir.F32, 2), float64(d), 10), one}
	}
	for run, want := range [][2]float64{{7, 41}, {29, 165}, {117, 661}} {
		out, err := exe.Run(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		for d := range out {
			if got := [2]float64{out[d][0].Float(0), out[d][0].Float(1)}; got != want || out[d][1].Int(0) != 1 {
				t.Errorf("run %d, device %d: %v and %v, want %v and 1", run, d, got, out[d][1].Int(0), want)
			}
			args[d][0] = out[d][0] // stays on its device
		}
	}
	if exe.Stats == nil || exe.Stats.Arguments != 16 {
		t.Errorf("%+v, want arguments of 16 bytes", exe.Stats)
	}
}

// Results that stay on their devices are arguments of the next run there, and come to the
// host when they are asked for, also after a run that nobody waited for.
func TestKeep(t *testing.T) {
	w := start(t, 4)
	exe, err := w.Compile(t.Context(), sums, 4, CompileOptions{Replicas: 4, Partitions: 1}, sumTypes)
	if err != nil {
		t.Fatal(err)
	}
	exe.Keep = []bool{true, false}
	one := ir.SplatOf(sumTypes[0], 1)
	args := make([][]*ir.Literal, 4)
	for d := range args {
		args[d] = []*ir.Literal{ir.Floats64(ir.Tensor(ir.F32, 2), float64(d), 10), one}
	}
	var out [][]*ir.Literal
	for run := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		if run == 2 {
			cancel()
		}
		var err error
		if out, err = exe.Run(ctx, args); err != nil {
			if run < 2 {
				t.Fatal(err)
			}
			if out, err = exe.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		for d := range out {
			if out[d][0].Data != nil || out[d][1].Int(0) != 1 {
				t.Errorf("run %d, device %d: %d bytes came to the host", run, d, len(out[d][0].Data))
			}
			args[d][0] = out[d][0]
		}
	}
	if err := exe.Fetch(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	for d := range out {
		if got := [2]float64{out[d][0].Float(0), out[d][0].Float(1)}; got != [2]float64{117, 661} {
			t.Errorf("device %d: %v, want 117 and 661", d, got)
		}
	}
}

// An error is in the plugin's own words, and the worker goes on.
func TestRefused(t *testing.T) {
	w := start(t, 4)
	_, err := w.Compile(t.Context(), strings.Replace(sums, "dense<true>", "dense<1.0>", 1), 4, CompileOptions{Replicas: 4, Partitions: 1}, sumTypes)
	var e *Error
	if !errors.As(err, &e) || e.Function != "PJRT_Client_Compile" {
		t.Fatalf("%v, want what the plugin says of the constant", err)
	}
	if _, err := w.Compile(t.Context(), sums, 8, CompileOptions{Replicas: 8, Partitions: 1}, sumTypes); err == nil || !strings.Contains(err.Error(), "the program runs on 8 devices, the plugin has 4") {
		t.Errorf("%v, want both numbers of devices", err)
	}
	if _, err := w.Compile(t.Context(), sums, 4, CompileOptions{Replicas: 4, Partitions: 1}, sumTypes[:1]); err == nil || !strings.Contains(err.Error(), "2 results, want 1") {
		t.Errorf("%v, want both numbers of results", err)
	}
	if _, err := w.Compile(t.Context(), sums, 4, CompileOptions{Replicas: 4, Partitions: 1}, sumTypes); err != nil {
		t.Error(err)
	}
}

// A plugin that ends its process ends that alone.
func TestCrash(t *testing.T) {
	w := start(t, 1)
	w.cmd.Process.Kill()
	_, err := w.Compile(t.Context(), sums, 1, CompileOptions{Replicas: 1, Partitions: 1}, sumTypes)
	if err == nil || !strings.Contains(err.Error(), "the plugin ended its process (signal: killed)") {
		t.Errorf("%v, want how the process ended", err)
	}
	if _, again := w.Compile(t.Context(), sums, 1, CompileOptions{Replicas: 1, Partitions: 1}, sumTypes); again == nil || again.Error() != err.Error() {
		t.Errorf("then %v, want the same", again)
	}
}

const endless = `module @endless {
  func.func @main(%a: tensor<f32>) -> tensor<f32> {
    %r = stablehlo.while(%x = %a) : tensor<f32>
      cond {
        %t = stablehlo.compare EQ, %x, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
      } do {
        %y = stablehlo.negate %x : tensor<f32>
        stablehlo.return %y : tensor<f32>
      }
    return %r : tensor<f32>
  }
}`

// A program that does not end is stopped.
func TestStop(t *testing.T) {
	w := start(t, 1)
	scalar := ir.Tensor(ir.F32)
	exe, err := w.Compile(t.Context(), endless, 1, CompileOptions{Replicas: 1, Partitions: 1}, []*ir.Type{scalar})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := exe.Run(ctx, [][]*ir.Literal{{ir.SplatOf(scalar, 1)}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the context", err)
	}
}

// TestParentEnds: a child whose parent has ended ends too, whatever it works on.
func TestParentEnds(t *testing.T) {
	w := start(t, 1)
	scalar := ir.Tensor(ir.F32)
	exe, err := w.Compile(t.Context(), endless, 1, CompileOptions{Replicas: 1, Partitions: 1}, []*ir.Type{scalar})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		_, err := exe.Run(t.Context(), [][]*ir.Literal{{ir.SplatOf(scalar, 1)}})
		failed <- err
	}()
	time.Sleep(100 * time.Millisecond) // it runs
	w.to.Close()                       // as the end of the parent does
	select {
	case err := <-failed:
		if err == nil {
			t.Error("the program ended")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the child goes on")
	}
}

// What is no plugin is refused with the reason.
func TestNoPlugin(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for path, want := range map[string]string{
		"text.so":                             filepath.Join(dir, "text.so"), // and not that there is no such file
		text:                                  "cannot be loaded",
		dir:                                   "not a file",
		filepath.Join(dir, "nowhere"):         "nowhere: no such file",
		"/usr/lib/x86_64-linux-gnu/libm.so.6": "it has no function GetPjrtApi",
	} {
		if _, err := os.Stat(path); filepath.Dir(path) != dir && err != nil && path != dir {
			continue // another system
		}
		if _, err := Start(t.Context(), path, "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// apiHead in C, and a plugin that returns one.
const fakePlugin = `#include <stddef.h>
#include <stdint.h>
struct version { size_t size; void *ext; int major, minor; };
struct api { size_t size; void *ext; struct version v; void *functions[200]; };
static struct api table = { SIZE, 0, { sizeof(struct version), 0, MAJOR, MINOR } };
void *NAME(void) { return RESULT; }
`

// TestStrangePlugins: libraries that are no plugin, or one of another version, or without
// what is called, are refused with the reason.
func TestStrangePlugins(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	head := int(unsafe.Offsetof(apiHead{}.functions))
	for name, fake := range map[string]struct {
		flags map[string]string
		want  string
	}{
		"older":   {map[string]string{"MINOR": "40"}, "a plugin of PJRT 0.40; versions 0.54 and later of 0 are known: install a newer one"},
		"next":    {map[string]string{"MAJOR": "1"}, "a plugin of PJRT 1.81;"},
		"nothing": {map[string]string{"RESULT": "0"}, "GetPjrtApi returns nothing"},
		"named":   {map[string]string{"NAME": "GetOtherApi"}, "it has no function GetPjrtApi"},
		"short":   {map[string]string{"SIZE": "8"}, "its table of functions has 8 bytes"},
		"empty":   {map[string]string{"SIZE": fmt.Sprint(head)}, "the plugin, of PJRT 0.81, has no such function"},
		"null":    {nil, "the plugin, of PJRT 0.81, has no such function"},
	} {
		t.Run(name, func(t *testing.T) {
			source, path := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".so")
			if err := os.WriteFile(source, []byte(fakePlugin), 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"-shared", "-fPIC", "-o", path, source}
			for macro, value := range map[string]string{"NAME": "GetPjrtApi", "SIZE": "sizeof(struct api)", "MAJOR": "0", "MINOR": "81", "RESULT": "&table"} {
				if v, ok := fake.flags[macro]; ok {
					value = v
				}
				args = append(args, "-D"+macro+"="+value)
			}
			if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if _, err := Start(t.Context(), path, "", nil); err == nil || !strings.Contains(err.Error(), fake.want) {
				t.Errorf("%v, want %q", err, fake.want)
			}
		})
	}
}

// A library of another architecture is said to be that.
func TestOtherMachine(t *testing.T) {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	header[16], header[18], header[20], header[52], header[58] = 3, 0xF3, 1, 64, 64 // a shared library for RISC-V
	path := filepath.Join(t.TempDir(), "other.so")
	if err := os.WriteFile(path, header, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), path, "", nil); err == nil || !strings.Contains(err.Error(), "a library for EM_RISCV, this machine is ") {
		t.Errorf("%v, want both machines", err)
	}
}

// A program that does not fit the memory of the devices ends with the plugin's words: its
// result has more bytes than addresses.
func TestMemory(t *testing.T) {
	const huge = `module @huge {
  func.func @main(%a: tensor<f32>) -> tensor<8388608x8388608xf32> {
    %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<8388608x8388608xf32>
    return %0 : tensor<8388608x8388608xf32>
  }
}`
	w := start(t, 1)
	scalar := ir.Tensor(ir.F32)
	exe, err := w.Compile(t.Context(), huge, 1, CompileOptions{Replicas: 1, Partitions: 1}, []*ir.Type{ir.Tensor(ir.F32, 8388608, 8388608)})
	if err == nil {
		_, err = exe.Run(t.Context(), [][]*ir.Literal{{ir.SplatOf(scalar, 1)}})
	}
	var e *Error
	if !errors.As(err, &e) || !e.OutOfMemory() || !strings.HasPrefix(err.Error(), "the devices do not have the memory that the program takes: ") {
		t.Errorf("%v, want that memory is exhausted", err)
	}
}
