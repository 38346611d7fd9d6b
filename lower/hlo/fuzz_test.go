package hlo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ppc/internal/wordfuzz"
	"ppc/ir"
	"ppc/ir/verify"
	"ppc/ir/xla"
	"ppc/lower/hlo"
	"ppc/lower/hlo/rules"
)

// No text makes the parser panic or hang, and what it takes and the verifiers
// accept prints as a text that prints the same way.
func FuzzParse(f *testing.F) {
	printed, refused := hlo.Texts(f)
	seeds := append(wordfuzz.Seeds(f, "hlo", "hlo", "lint", "xla"), printed...)
	words := wordfuzz.Of(seeds...)
	for _, s := range append(seeds, refused...) {
		f.Add(s, wordfuzz.Nothing)
	}
	f.Fuzz(func(t *testing.T, src string, edits []byte) {
		if len(src) < 1<<14 {
			parses(t, words.Edit(src, edits))
		}
	})
}

// parses holds FuzzParse for one text.
func parses(t *testing.T, src string) {
	m, err := read(src)
	if err != nil || m.Form&ir.Local == 0 {
		return
	}
	text, err := hlo.Print(m)
	if err != nil {
		return
	}
	m, err = read(text)
	if err != nil {
		t.Fatalf("%v\n%s\nof\n%s", err, text, src)
	}
	if twice, err := hlo.Print(m); err != nil || twice != text {
		t.Fatalf("%v\n%s\nof\n%s", err, cmp.Diff(text, twice), src)
	}
}

// read is the program of a text that is one.
func read(src string) (*ir.Module, error) {
	m, err := hlo.Parse("in.hlo", []byte(src))
	if err != nil {
		return nil, err
	}
	if err := verify.Verify(m); err != nil {
		return nil, err
	}
	if err := rules.Verify(m); err != nil {
		return nil, err
	}
	hlo.DropUnreached(m)
	_, local, err := xla.ImportHLO(m, xla.Options{})
	if err != nil {
		return nil, err
	}
	if local {
		m.Form |= ir.Expanded | ir.Local
	}
	return m, verify.Verify(m)
}
