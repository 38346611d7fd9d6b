package stats

import (
	"regexp"
	"strconv"
	"strings"

	"ppc/ir"
)

// hloCollectives are the instructions of HLO at which devices meet and that
// StableHLO has no op for: what is split in time, counted where it starts, and
// the all-to-all that has an operand for each device of a group.
var hloCollectives = map[string]ir.Kind{
	"hlo.all-to-all":               ir.AllToAll,
	"hlo.all-gather-start":         ir.AllGather,
	"hlo.all-reduce-start":         ir.AllReduce,
	"hlo.collective-permute-start": ir.CollectivePermute,
}

// collectiveKind is the collective that op is, ir.Invalid where it is none.
func collectiveKind(op *ir.Op) ir.Kind {
	switch {
	case op.Kind.Has(ir.Collective):
		return op.Kind
	case op.Kind == ir.Unknown:
		return hloCollectives[op.Spelling]
	}
	return ir.Invalid
}

// resultBytes is the size of what op gives. The result of one that starts may
// be a tuple of operand, result and what its end needs to know.
func resultBytes(op *ir.Op) int {
	if k := hloCollectives[op.Spelling]; k == ir.AllGather || k == ir.CollectivePermute {
		if t := op.Results[0].Type; t.Kind == ir.TupleType && len(t.Elems) > 1 {
			return BytesOf(t.Elems[1])
		}
	}
	return bytesOfAll(op.Results)
}

var (
	hloMeshGroups = regexp.MustCompile(`^@?mesh\S*\[([^\]]*)\][^{]*\{([^}]*)\}`)
	hloMeshAxis   = regexp.MustCompile(`'([^']+)'=(\d+)`)
	hloGridGroups = regexp.MustCompile(`^\[\d+,(\d+)\]`)
	hloListGroups = regexp.MustCompile(`^\{\{([^}]*)\}`)
)

// hloGroupSize is how many devices stand in a group of an attribute in one of
// HLO's forms: mesh['x'=4,'y'=2] {'x'}, [2,4]<=[8], {{0,1},{2,3}}. It is 0
// where that does not say.
func hloGroupSize(text string) int {
	if m := hloMeshGroups.FindStringSubmatch(text); m != nil {
		n := 1
		for _, axis := range hloMeshAxis.FindAllStringSubmatch(m[1], -1) {
			if strings.Contains(m[2], "'"+axis[1]+"'") {
				size, _ := strconv.Atoi(axis[2])
				n *= size
			}
		}
		return n
	}
	if m := hloGridGroups.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	if m := hloListGroups.FindStringSubmatch(text); m != nil {
		return strings.Count(m[1], ",") + 1
	}
	return 0
}
