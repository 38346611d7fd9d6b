package examples_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ppc/ir/lang"
	"ppc/ir/mlir"
)

// compiled are large programs on a given number of devices. The stack has 61 layers
// with experts on one stage; unrolled, its program is as many times as large.
var compiled = []struct {
	name string
	text func() string
	set  func(devices int) []string
}{
	{"llama2_7b", func() string { return `include "llama2_7b.pp"` }, func(n int) []string {
		fsdp := 1
		for fsdp*fsdp < n/2 {
			fsdp *= 2
		}
		return []string{fmt.Sprint("mesh.fsdp=", fsdp), fmt.Sprint("mesh.data=", n/2/fsdp), fmt.Sprint("axes.batch=", 24*n)}
	}},
	{"moe61", moe61, func(n int) []string { return moeSet(n, 1) }},
	{"moe61 unrolled", moe61, func(n int) []string { return moeSet(n, 61) }},
}

func moe61() string {
	src, err := os.ReadFile("llama_moe.pp")
	if err != nil {
		panic(err)
	}
	return strings.Replace(string(src), "layers: 8", "layers: 61", 1)
}

func moeSet(devices, unroll int) []string {
	return []string{"mesh.stage=1", "pipeline.repeats=61", fmt.Sprint("pipeline.unroll=", unroll), fmt.Sprint("mesh.fsdp=", devices/2), fmt.Sprint("axes.batch=", 4*devices), "axes.embed=32768"}
}

// Compiling allocates as much for 16,384 devices as for eight.
func TestAllocationsAreFlat(t *testing.T) {
	for _, c := range compiled[:2] {
		allocations := func(devices int) float64 {
			return testing.AllocsPerRun(1, func() { lowerAs(t, c.text(), lang.Options{Train: true, Set: c.set(devices)}) })
		}
		few, many := allocations(8), allocations(16384)
		t.Logf("%s: %.0f allocations for 8 devices, %.0f for 16,384", c.name, few, many)
		if many > 1.1*few {
			t.Errorf("%s: %.0f allocations for 8 devices, %.0f for 16,384", c.name, few, many)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, c := range compiled {
		for _, devices := range []int{8, 512, 16384} {
			b.Run(fmt.Sprint(c.name, "/", devices), func(b *testing.B) {
				b.ReportAllocs()
				ops := 0
				for b.Loop() {
					m := lowerAs(b, c.text(), lang.Options{Train: true, Set: c.set(devices)})
					ops = strings.Count(mlir.Print(m), "\n")
				}
				b.ReportMetric(float64(ops), "lines")
			})
		}
	}
}
