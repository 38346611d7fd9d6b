package hlo

import (
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
)

// A bitcast reads the elements of its operand as they are in memory, tile by tile, whatever it
// calls their shape. The operand is 0, 1, 2, ….
func TestBitcast(t *testing.T) {
	for _, c := range []struct {
		name, operand, result string
		want                  []int
	}{
		{"order", "s32[2,3]{0,1}", "s32[6]{0}", []int{0, 3, 1, 4, 2, 5}},
		{"rows split", "s32[4,2]{1,0:T(2,128)}", "s32[2,2,2]{2,1,0:T(2,128)}", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"columns of two heads", "s32[2,4]{0,1:T(4,128)}", "s32[2,2,2]{0,2,1:T(2,128)}", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"operand without tiles", "s32[2,4]{0,1}", "s32[2,2,2]{0,2,1:T(2,128)}", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"result without tiles", "s32[2,2,2]{0,2,1:T(2,128)}", "s32[2,4]{0,1}", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"into other tiles", "s32[2,2]{1,0:T(2,2)}", "s32[4]{0:T(4)}", []int{0, 1, 2, 3}},
		{"across tiles", "s32[2,4]{1,0:T(2,2)}", "s32[8]{0:T(8)}", []int{0, 1, 4, 5, 2, 3, 6, 7}},
	} {
		m, err := Parse("in.hlo", []byte("ENTRY e {\n  p = "+c.operand+" parameter(0)\n  ROOT b = "+c.result+" bitcast(p)\n}\n"))
		if err == nil {
			m, err = Runnable(m)
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		in := m.Main().Params()[0].Type
		counted := make([]int, in.NumElements())
		for i := range counted {
			counted[i] = i
		}
		out, err := eval.RunDevices(m, m.Main(), [][]*ir.Literal{{ir.Ints64(in, counted...)}}, eval.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := make([]int, in.NumElements())
		for i := range got {
			got[i] = int(out[0][0].Int(i))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// Where only one of the layouts has tiles, and elements change their places among the rows of
// such tiles, the numbers are unknown.
func TestBitcastWithoutTiles(t *testing.T) {
	for _, shapes := range [][2]string{{"f32[2,8]{1,0}", "f32[4,4]{1,0:T(2,4)}"}, {"f32[4,2]{1,0}", "f32[2,2,2]{2,1,0:T(4,128)}"}, {"f32[4]{0:T(4)}", "f32[2,2]{1,0}"}} {
		m, err := Parse("in.hlo", []byte("ENTRY e {\n  p = "+shapes[0]+" parameter(0)\n  ROOT b = "+shapes[1]+" bitcast(p)\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Runnable(m); err == nil || !strings.Contains(err.Error(), "which tiles the latter has is not written") {
			t.Errorf("%s to %s: got %v", shapes[0], shapes[1], err)
		}
	}
}
