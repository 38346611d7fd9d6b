package examples_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"ppc/ir/mlir"
	"ppc/lower/hlo"
)

// flat is llama.pp, larger, on stage=4 and so many devices that share weights.
func flat(t testing.TB, fsdp string) string {
	t.Helper()
	src, err := os.ReadFile("llama.pp")
	if err != nil {
		t.Fatal(err)
	}
	m := lower(t, string(src), "axes.batch=32768", "axes.embed=4096", "mesh.fsdp="+fsdp)
	if _, err := hlo.Print(m); err != nil {
		t.Fatal(err)
	}
	return mlir.Print(m)
}

// Nothing in the compiler grows with the number of devices: 16,384 of them
// take the text and, within noise, the time of eight. What the text says may
// differ in a collective or two, since other bytes are the fewest, but not in
// length; HLO's lists of source-target pairs are made by its printer.
func TestFlat(t *testing.T) {
	digits := regexp.MustCompile(`\d+`)
	size := func(fsdp string) int { return len(digits.ReplaceAllString(flat(t, fsdp), "0")) }
	few, many := size("2"), size("4096")
	if many > few*11/10 {
		t.Errorf("%d characters but for digits for 8 devices, %d for 16,384", few, many)
	}
	best := func(fsdp string) time.Duration {
		least := time.Hour
		for range 5 {
			start := time.Now()
			flat(t, fsdp)
			least = min(least, time.Since(start))
		}
		return least
	}
	a, b := best("2"), best("4096")
	t.Logf("8 devices %v, 16,384 devices %v", a, b)
	if b > 3*a {
		t.Errorf("lowering takes %v for 8 devices, %v for 16,384", a, b)
	}
}

// Nor does it grow with the number of slices, and of devices in each: along an
// axis that is partly over slices, groups are digits of the devices' numbers.
func TestFlatSlices(t *testing.T) {
	digits := regexp.MustCompile(`\d+`)
	size := func(data string) int {
		m := lower(t, `include "llama_hybrid.pp"`, "axes.batch=65536", "axes.embed=4096", "mesh.data="+data)
		return len(digits.ReplaceAllString(mlir.Print(m), "0"))
	}
	if few, many := size("dcn(2)*ici(2)"), size("dcn(64)*ici(64)"); many > few*11/10 {
		t.Errorf("%d characters but for digits for 16 devices, %d for 16,384", few, many)
	}
}

func BenchmarkLower(b *testing.B) {
	for _, fsdp := range []string{"2", "4096"} {
		b.Run("fsdp="+fsdp, func(b *testing.B) {
			for b.Loop() {
				flat(b, fsdp)
			}
		})
	}
}
