package xla

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// A text is a sharding in XLA's text form: {replicated}, {maximal device=1},
// {devices=[2,2]<=[4] last_tile_dim_replicate}, {manual}, or {{…}, {…}} of a tuple.
type text struct {
	spelling string
	kind     textKind
	tuple    []*text
	device   int   // of maximal
	tiles    []int // of tiled: how many along each dimension, then along each of subgroups
	grid     []int // of tiled, in iota form: the devices as a grid
	perm     []int // of the grid's dimensions
	list     []int // of tiled, in the older form: the devices in the order of tiles
	groups   []textKind
	named    *ir.Sharding // of tiled, where it names axes
	mesh     *ir.Mesh     // of named
	manual   []ir.AxisRef // of named
	alike    int          // the group whose values have one sharding, plus one; 0 is none
}

type textKind uint8

const (
	unknown textKind = iota // anything
	replicated
	maximal
	manual
	unreduced
	tiled
	tuple
)

var subgroups = map[string]textKind{"replicated": replicated, "manual": manual, "unreduced": unreduced}

// parse reads a sharding in XLA's text form.
func parse(s string) (*text, error) {
	r := &reader{src: s}
	t := r.sharding(0)
	if r.peek() != "" {
		r.fail("%q after its end", r.peek())
	}
	if r.wrong != "" {
		return nil, fmt.Errorf("%q: %s", s, r.wrong)
	}
	return t, nil
}

// A reader reads a sharding word by word. Once something is wrong it is at the end, and
// what it has read is not used.
type reader struct {
	src   string
	at    int
	wrong string // what is wrong first
}

func (r *reader) fail(format string, args ...any) {
	if r.wrong == "" {
		r.wrong, r.at = fmt.Sprintf(format, args...), len(r.src)
	}
}

// peek is the next word: a name or number, <=, or one character; "" at the end.
func (r *reader) peek() string {
	for r.at < len(r.src) && (r.src[r.at] == ' ' || r.src[r.at] == '\n' || r.src[r.at] == '\t') {
		r.at++
	}
	rest := r.src[r.at:]
	n := strings.IndexFunc(rest, func(c rune) bool {
		return !(c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	})
	switch {
	case n < 0:
		return rest
	case n > 0:
		return rest[:n]
	case strings.HasPrefix(rest, "<="):
		return rest[:2]
	case rest[0] == '\'' || rest[0] == '"':
		if k := strings.IndexByte(rest[1:], rest[0]); k >= 0 {
			return rest[:k+2]
		}
	}
	return rest[:1]
}

func (r *reader) word() string {
	w := r.peek()
	r.at += len(w)
	return w
}

func (r *reader) accept(w string) bool {
	if r.peek() != w {
		return false
	}
	r.at += len(w)
	return true
}

func (r *reader) expect(w string) {
	if !r.accept(w) {
		r.fail("found %q, want %q", r.peek(), w)
	}
}

func (r *reader) number() int {
	w := r.word()
	n, err := strconv.Atoi(w)
	if err != nil || n < 0 || n > ir.MaxDevices {
		r.fail("found %q, want a number of at most %d", w, ir.MaxDevices)
	}
	return n
}

// list reads what item reads, separated by commas, up to end.
func (r *reader) list(end string, item func()) {
	for r.wrong == "" && !r.accept(end) {
		item()
		if !r.accept(",") && r.peek() != end {
			r.fail("found %q, want %q", r.peek(), end)
		}
	}
}

func (r *reader) numbers(open, end string) []int {
	out := []int{}
	r.expect(open)
	r.list(end, func() { out = append(out, r.number()) })
	return out
}

func (r *reader) sharding(depth int) *text {
	start := r.at
	r.expect("{")
	t := new(text)
	if next := r.peek(); depth == 0 && (next == "{" || next == "}") {
		t.kind = tuple
		r.list("}", func() { t.tuple = append(t.tuple, r.sharding(1)) })
		t.spelling = strings.TrimSpace(r.src[start:r.at])
		return t
	}
	for r.wrong == "" && !r.accept("}") {
		r.part(t, r.word())
		r.accept(",")
	}
	t.spelling = strings.TrimSpace(r.src[start:r.at])
	if t.kind == tiled && t.named == nil && r.wrong == "" {
		r.tiling(t)
	}
	return t
}

// part reads what follows a word of a sharding.
func (r *reader) part(t *text, word string) {
	switch word {
	case "":
		r.fail("a brace is not closed")
	case "replicated", "manual", "unreduced":
		t.kind = subgroups[word]
	case "unknown":
	case "maximal":
		t.kind = maximal
	case "device":
		r.expect("=")
		t.device = r.number()
	case "single_device", "maximal_mesh":
		t.kind = maximal
		r.expect("[")
		r.expect("device_id")
		r.expect("=")
		t.device = r.number()
		r.expect("]")
	case "devices":
		t.kind = tiled
		r.expect("=")
		t.tiles = r.numbers("[", "]")
		r.devices(t)
	case "last_tile_dim_replicate":
		t.groups = []textKind{replicated}
	case "last_tile_dims":
		r.expect("=")
		r.expect("{")
		r.list("}", func() {
			k, ok := subgroups[r.peek()]
			if !ok {
				r.fail("last_tile_dims has %q, want replicated, manual or unreduced", r.peek())
			}
			r.word()
			t.groups = append(t.groups, k)
		})
	case "shard_as", "shard_like":
		t.alike = 1 + r.number()
	case "metadata":
		r.expect("=")
		r.skip()
	case "mesh":
		r.named(t)
	default:
		r.fail("%q is not read, want replicated, maximal, manual, devices or mesh", word)
	}
}

// skip passes over {…}.
func (r *reader) skip() {
	r.expect("{")
	for depth := 1; depth > 0 && r.wrong == ""; {
		switch r.word() {
		case "{":
			depth++
		case "}":
			depth--
		case "":
			r.fail("a brace is not closed")
		}
	}
}

// devices reads <=[2,2]T(1,0), or the older list.
func (r *reader) devices(t *text) {
	if !r.accept("<=") {
		t.list = []int{r.number()}
		for r.accept(",") {
			t.list = append(t.list, r.number())
		}
		return
	}
	t.grid = r.numbers("[", "]")
	if r.accept("T") {
		t.perm = r.numbers("(", ")")
		return
	}
	for i := range t.grid {
		t.perm = append(t.perm, i)
	}
}

// tiling checks that every device has one place among the tiles.
func (r *reader) tiling(t *text) {
	n := ir.ProductUpTo(t.tiles, ir.MaxDevices)
	if n < 1 || len(t.groups) > len(t.tiles) {
		r.fail("%d tiles with %d kinds of last dimensions", n, len(t.groups))
	}
	if t.list != nil {
		if !isPermutation(t.list, n) {
			r.fail("%d tiles want the devices 0 to %d, each once", n, n-1)
		}
		return
	}
	if ir.ProductUpTo(t.grid, ir.MaxDevices) != n || !isPermutation(t.perm, len(t.grid)) {
		r.fail("%d tiles want a grid of as many devices, with each of its dimensions once", n)
	}
}

func isPermutation(ns []int, n int) bool {
	if len(ns) != n {
		return false
	}
	seen := make([]bool, n)
	for _, k := range ns {
		if k < 0 || k >= n || seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}

// named reads the form that names axes, after its first word:
// mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}], replicated={}, unreduced={'c'}.
func (r *reader) named(t *text) {
	t.kind, t.mesh, t.named = tiled, &ir.Mesh{Name: "mesh"}, &ir.Sharding{Dims: []ir.DimSharding{}}
	r.expect("[")
	r.list("]", func() {
		name := unquoted(r.word())
		r.expect("=")
		t.mesh.Axes = append(t.mesh.Axes, ir.MeshAxis{Name: name, Size: r.number()})
	})
	r.keeps(ir.SoundMesh(t.mesh))
	for r.accept(",") {
		word := r.word()
		if t.named == nil { // all has been said
			r.fail("%q is not read in a sharding that names axes", word)
			return
		}
		switch word {
		case "[":
			r.list("]", func() { t.named.Dims = append(t.named.Dims, r.dim()) })
		case "replicated", "manual", "unreduced":
			r.namedAxes(t, word)
		case "device_ids":
			r.fail("device_ids are not read; list the devices with devices=[…]")
		default:
			r.fail("%q is not read in a sharding that names axes", word)
		}
	}
	if t.named == nil {
		return
	}
	if r.keeps(ir.DistinctAxes(t.mesh, slices.Concat(t.named.Refs(), t.manual))); r.wrong != "" {
		return
	}
	for i := range t.named.Dims {
		d := &t.named.Dims[i]
		d.Axes = t.mesh.JoinAxes(nil, d.Axes)
	}
}

// keeps fails with what a rule says, unless it is nil.
func (r *reader) keeps(rule *ir.Rule) {
	if rule != nil {
		r.fail("%s", rule.Msg)
	}
}

func (r *reader) namedAxes(t *text, word string) {
	if !r.accept("=") {
		t.kind, t.named = subgroups[word], nil // of the global value
		return
	}
	by := ""
	if w := r.peek(); word == "unreduced" && (w == "max" || w == "min") {
		by = r.word()
	}
	axes := r.dim().Axes
	switch word {
	case "replicated":
		t.named.Replicated = axes
	case "manual":
		t.manual = axes
	case "unreduced":
		t.named.Unreduced, t.named.ReducedBy = axes, by
	}
}

// dim reads {'a', 'b':(1)2, ?}.
func (r *reader) dim() ir.DimSharding {
	d := ir.DimSharding{}
	r.expect("{")
	r.list("}", func() {
		if r.accept("?") {
			d.Open = true
			return
		}
		a := ir.Ax(unquoted(r.word()))
		if r.accept(":") {
			r.expect("(")
			a.Pre = r.number()
			r.expect(")")
			if a.Size = r.number(); a.Size < 2 {
				r.fail("a sub-axis of %q of size %d, want at least 2", a.Name, a.Size)
			}
		}
		d.Axes = append(d.Axes, a)
	})
	return d
}

func unquoted(w string) string { return strings.Trim(w, `'"`) }

// dims are the tiles along the dimensions of the value.
func (t *text) dims() []int { return t.tiles[:len(t.tiles)-len(t.groups)] }

// has reports whether t has a subgroup of a kind.
func (t *text) has(k textKind) bool {
	return t.kind == k || slices.Contains(t.groups, k) || k == manual && len(t.manual) > 0 ||
		slices.ContainsFunc(t.tuple, func(e *text) bool { return e.has(k) })
}
