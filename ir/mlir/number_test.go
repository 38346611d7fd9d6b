package mlir_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"ppc/ir/mlir"
)

// Decimal numbers are rounded once, as strconv rounds them, whatever way they take.
func TestDecimalsAreRoundedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{"0.0", "-0.0", "1.", "16777217.0", "16777216.0e10", "9007199254740993.0", "1.0e22", "1.0e23", "123456789012345678.0", "1234567890123456789.0", "1.0e-400", "1.0e400", "0.000000000000000000001", "8388609.0e-10", "3.4028236e38", "1.0E+05"}
	for range 20_000 {
		v := math.Float64frombits(r.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if r.IntN(2) == 0 {
			v = r.NormFloat64() * math.Pow(10, float64(r.IntN(16)-8))
		}
		format, digits := byte('e'), r.IntN(18)+1
		if a := math.Abs(v); r.IntN(2) == 0 && a > 1e-12 && a < 1e15 {
			format = 'f'
		}
		texts = append(texts, strconv.FormatFloat(v, format, digits, 64))
	}
	for _, e := range []struct {
		name string
		size int
	}{{"f32", 32}, {"f64", 64}} {
		typ := fmt.Sprintf("tensor<%dx%s>", len(texts), e.name)
		m, err := mlir.Parse("numbers.mlir", []byte("func.func @main() -> "+typ+" {\n  %w = stablehlo.constant dense<["+strings.Join(texts, ", ")+"]> : "+typ+"\n  return %w : "+typ+"\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		l := m.Main().Body.Ops[0].Literal("value")
		for i, s := range texts {
			want, _ := strconv.ParseFloat(s, e.size)
			if got := l.Float(i); math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("%s as %s is %v, want %v", s, e.name, got, want)
			}
		}
	}
}
