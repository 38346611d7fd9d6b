package wordfuzz

import (
	"math/rand/v2"
	"testing"
)

func TestEdit(t *testing.T) {
	const text = "f(%a: 4x4xf32) {\n  %b = x.add %a, 7\n  return %b\n}\n"
	w := Of(text, "g x.sub %c 12")
	for _, c := range []struct {
		edits []byte
		want  string
	}{
		{nil, text},
		{[]byte{0, 0, 9, 0, 4, 0}, "f(%a: 4x4xf32) {\n  %b = x.sub %a, 7\n  return %b\n}\n"},
		{[]byte{0, 0, 0, 0, 3, 0}, "g(%a: 4x4xf32) {\n  %b = x.add %a, 7\n  return %b\n}\n"},
		{[]byte{1, 0, 7, 0, 2, 0}, "f(%a: 4x4xf32) {\n  %a = x.add %a, 7\n  return %b\n}\n"},
		{[]byte{2, 0, 7, 0, 10, 0}, "f(%a: 4x4xf32) {\n  %a = x.add %b, 7\n  return %b\n}\n"},
		{[]byte{3, 0, 5, 0, 6, 0}, "f(%a: 4x4xf32) {\n  %b = x.add %a, -1\n  return %b\n}\n"},
		{[]byte{4, 0, 7, 0, 0, 0}, "f(%a: 4x4xf32) { = x.add %a, 7\n  return %b\n}\n"},
		{[]byte{6, 0, 7, 0, 0, 0}, "f(%a: 4x4xf32) {\n  return %b\n}\n"},
		{[]byte{6, 0, 13, 0, 7, 1}, "f(%a: 4x4xf32) {\n  return %b\n  %b = x.add %a, 7\n  return %b\n}\n"},
		{[]byte{7, 0, 0, 0, 6, 0}, "f(\n  %b = x.add %a, 7\n  return %b) {\n  %b = x.add %a, 7\n  return %b\n}\n"},
	} {
		if got := w.Edit(text, c.edits); got != c.want {
			t.Errorf("edits %v: got\n%s\nwant\n%s", c.edits, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		edits := make([]byte, r.IntN(60))
		for i := range edits {
			edits[i] = byte(r.Uint32())
		}
		w.Edit(text, edits)
		Words{}.Edit(text, edits)
	}
}
