package mlir

import (
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
)

// checkMnemonic reports name, which begins at offset at, where it is of a dialect that
// has no such attribute: #stablehlo.foo.
func (s *parser) checkMnemonic(at int, name string) {
	if dialect, word, _ := strings.Cut(name[1:], "."); !ir.HasAttr(dialect, word) {
		s.fail(at, "the dialect %s has no attribute %s", dialect, name)
	}
}

// checkEnum reports a set of words, named at offset at, that does not exist.
func (s *parser) checkEnum(at int, set string) {
	if !slices.Contains(ir.EnumSets, set) {
		s.fail(at, "there is no set of words %s, want one of %s", set, strings.Join(ir.EnumSets, ", "))
	}
}

// dotAlgorithm reads what begins at offset start, #stablehlo.dot_algorithm<…>, and
// reports one that does not exist.
func (s *parser) dotAlgorithm(start int) ir.Attr {
	a := ir.Verbatim(s.raw(start))
	if r := ir.AlgorithmFits(a); r != nil {
		s.report(start, "%s [dot_general-%s]", r.Msg, r.Label)
	}
	return a
}

// accuracy reads #stablehlo.result_accuracy<atol = 1.0, rtol = 0.5, ulps = 2, mode = …>.
// A tolerance of zero is what one without it has.
func (s *parser) accuracy() ir.Attr {
	s.next()
	s.expect("<")
	var text strings.Builder
	text.WriteString("#stablehlo.result_accuracy<")
	for _, name := range []string{"atol", "rtol", "ulps"} {
		if !s.accept(name) {
			continue
		}
		s.expect("=")
		switch a := s.tolerance(name == "ulps").(type) {
		case ir.Float:
			if value, _, _ := strings.Cut(a.String(), " :"); a.Value != 0 {
				fmt.Fprintf(&text, "%s = %s, ", name, value)
			}
		case ir.Int:
			if a.Value != 0 {
				fmt.Fprintf(&text, "%s = %d, ", name, a.Value)
			}
		}
		s.expect(",")
	}
	s.expect("mode")
	s.expect("=")
	if s.text() != accuracyMode {
		s.wanted(accuracyMode)
	}
	text.WriteString("mode = " + s.raw(s.tok.start))
	s.expect(">")
	return ir.Verbatim(text.String() + ">")
}

const accuracyMode = "#stablehlo.result_accuracy_mode"

// tolerance reads a number, which is an integer or not.
func (s *parser) tolerance(integer bool) ir.Attr {
	kind, t := floatToken, ir.F64
	if integer {
		kind, t = intToken, ir.I64
	}
	if !s.at("-") && s.tok.kind != kind {
		s.wanted(map[bool]string{true: "an integer", false: "a number with a point"}[integer])
	}
	return s.number(t)
}
