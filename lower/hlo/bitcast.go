package hlo

import (
	"regexp"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// The attributes of a bitcast that say how its operand and its result are laid
// out: the order of the dimensions, the minor one first, where it is not the default,
// and the tiles, where there are some. They are no attributes in HLO.
const (
	operandOrder = "operand_minor_to_major"
	resultOrder  = "result_minor_to_major"
	operandTiles = "operand_tiles"
	resultTiles  = "result_tiles"
)

// tilesPattern finds the tiles of a layout: T(8,128)(2,1).
var tilesPattern = regexp.MustCompile(`T((?:\([^()]*\))+)`)

func (b *body) bitcastLayouts(in *syntax.Instruction, attrs *ir.Attrs) {
	from, to := "", in.Shape.Layout()
	if o := in.Operands[0]; o.Shape != nil && o.Shape.Layout() != "" {
		from = o.Shape.Layout()
	} else if len(o.Path) == 0 {
		from = b.layouts[o.Name]
	}
	for name, l := range map[string]string{operandTiles: from, resultTiles: to} {
		_, rest, _ := strings.Cut(l, ":")
		if m := tilesPattern.FindStringSubmatch(rest); m != nil {
			attrs.Set(name, tilesAttr(m[1]))
		}
	}
	for name, l := range map[string]string{operandOrder: from, resultOrder: to} {
		order, _, _ := strings.Cut(strings.Trim(l, "{}"), ":")
		if dims, err := syntax.ParseInts("{" + order + "}"); err == nil && order != "" {
			attrs.Set(name, ir.Ints(dims))
		}
	}
}

// resizes reports whether a bitcast has elements of one width before and after, and
// as many, unless they are in tiles, of which it may be a part.
func resizes(op *ir.Op) bool {
	from, to := op.Operands[0].Type, op.Result().Type
	return from.IsTensor() && to.IsTensor() && from.IsStatic() && to.IsStatic() && from.Elem.Bits() == to.Elem.Bits() &&
		(from.NumElements() == to.NumElements() || op.Attrs.Has(operandTiles) && op.Attrs.Has(resultTiles)) &&
		from.Elem.IsComplex() == to.Elem.IsComplex()
}

// bitcast reads the elements of its operand in the order in which they are in
// memory, under another shape and order; that order aside if no numbers count.
func (u *unfuser) bitcast(op *ir.Op) *ir.Value {
	b, x, t := u.builder(op), op.Operands[0], op.Result().Type
	if x.Type.Elem != t.Elem {
		x = b.Emit(ir.BitcastConvert, []*ir.Value{x}, nil, nil, []*ir.Type{x.Type.WithElem(t.Elem)}).Result()
	}
	if !u.exact && x.Type.NumElements() == t.NumElements() {
		return b.Reshape(x, t.Shape...)
	}
	from := layout{majorFirst(op.Ints(operandOrder), x.Type.Rank()), u.tilesOf(op, operandTiles)}
	to := layout{majorFirst(op.Ints(resultOrder), t.Rank()), u.tilesOf(op, resultTiles)}
	laid := pick(t.Shape, to.dims)
	x = b.Transpose(x, from.dims...)
	if u.tilesWritten(op, from, to, x.Type.Shape, laid) && (!slices.EqualFunc(from.tiles, to.tiles, slices.Equal) || !sameEnd(x.Type.Shape, laid, mostDims(from.tiles))) {
		x = retiled(b, x, from.tiles, laid, to.tiles)
	}
	back := make([]int, t.Rank())
	for i, d := range to.dims {
		back[d] = i
	}
	return b.Transpose(b.Reshape(x, laid...), back...)
}

// tilesWritten reports whether both layouts of a bitcast have their tiles written, or need
// none. XLA:TPU leaves the tiles of a layout out where a fusion decides them. The elements are
// then in the same order before and after where every tile of the other layout is as many rows
// of both shapes; else their places are unknown, and it fails.
func (u *unfuser) tilesWritten(op *ir.Op, from, to layout, before, after []int) bool {
	if (len(from.tiles) == 0) == (len(to.tiles) == 0) {
		return true
	}
	tile := append(slices.Clone(from.tiles), to.tiles...)[0]
	if !sameRows(before, after, tile) {
		u.fail(op, "bitcast of %s to %s between a layout with tiles and one without: which tiles the latter has is not written", BareShape(op.Operands[0].Type), BareShape(op.Result().Type))
	}
	return false
}

// sameRows reports whether tiles hold the same elements of two shapes in the same order,
// whatever is before them: the dimensions that the tile has are equal but for the first, and
// that is equal or a multiple of the tile's.
func sameRows(a, b, tile []int) bool {
	n := len(tile)
	a, b = append(ones(n), a...), append(ones(n), b...)
	a, b = a[len(a)-n:], b[len(b)-n:]
	return slices.Equal(a[1:], b[1:]) && (a[0] == b[0] || a[0]%tile[0] == 0 && b[0]%tile[0] == 0)
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// A layout is the order of the dimensions, the major one first, and the tiles.
type layout struct {
	dims  []int
	tiles [][]int
}

func pick(xs, at []int) []int {
	out := make([]int, len(at))
	for i, k := range at {
		out[i] = xs[k]
	}
	return out
}

// largestTile bounds what a text may ask for: no device has larger tiles.
const largestTile = 1 << 16

// tilesAttr are the sizes of the tiles (8,128)(2,1) one after the other, with a zero
// behind each tile; -1 where one is no list of such.
func tilesAttr(text string) ir.Ints {
	var tiles ir.Ints
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '(' || r == ')' }) {
		sizes, err := syntax.ParseInts("{" + part + "}")
		if err != nil || slices.ContainsFunc(sizes, func(n int) bool { return n < 1 || n > largestTile }) {
			return ir.Ints{-1}
		}
		tiles = append(append(tiles, sizes...), 0)
	}
	return tiles
}

// tilesOf are the tiles that the attribute of op called name has; it fails where they
// are no numbers.
func (u *unfuser) tilesOf(op *ir.Op, name string) (tiles [][]int) {
	var tile []int
	for _, n := range op.Ints(name) {
		switch {
		case n < 0:
			u.fail(op, "bitcast between layouts with tiles whose sizes are not numbers from 1 to %d", largestTile)
		case n == 0:
			tiles, tile = append(tiles, tile), nil
		default:
			tile = append(tile, n)
		}
	}
	return tiles
}

// mostDims is how many dimensions tiles are of.
func mostDims(tiles [][]int) int {
	n := 0
	for _, t := range tiles {
		n = max(n, len(t))
	}
	return n
}

// sameEnd reports whether two shapes have the same last n sizes.
func sameEnd(a, b []int, n int) bool {
	if len(a) < n || len(b) < n {
		return slices.Equal(a, b)
	}
	return slices.Equal(a[len(a)-n:], b[len(b)-n:])
}

// A tiling is the cutting of the last dimensions of a shape into tiles: padded to
// multiples, split into tiles and places in them, the latter last.
type tiling struct {
	shape, padded, split, perm, cut []int
}

func newTiling(shape, tile []int) tiling {
	for len(shape) < len(tile) {
		shape = append([]int{1}, shape...)
	}
	t := tiling{shape: shape, padded: slices.Clone(shape)}
	lead := len(shape) - len(tile)
	var places []int
	for d, n := range shape {
		t.perm = append(t.perm, len(t.split))
		if d < lead {
			t.split = append(t.split, n)
			continue
		}
		size := tile[d-lead]
		count := (n + size - 1) / size
		t.padded[d] = count * size
		places = append(places, len(t.split)+1)
		t.split = append(t.split, count, size)
	}
	t.perm = append(t.perm, places...)
	t.cut = pick(t.split, t.perm)
	return t
}

// retiled reads x, whose dimensions are in the order of memory, as memory has it in
// tiles, as a value of the shape laid in other tiles. What fills up tiles is zeros.
func retiled(b *ir.Builder, x *ir.Value, from [][]int, laid []int, to [][]int) *ir.Value {
	zero := func() *ir.Value { return b.Splat(ir.Tensor(x.Type.Elem), 0) }
	for _, tile := range from {
		t := newTiling(x.Type.Shape, tile)
		high := make([]int, len(t.shape))
		for d := range high {
			high[d] = t.padded[d] - t.shape[d]
		}
		x = b.Pad(b.Reshape(x, t.shape...), zero(), make([]int, len(high)), high, make([]int, len(high)))
		x = b.Transpose(b.Reshape(x, t.split...), t.perm...)
	}
	var tilings []tiling
	shape := laid
	for _, tile := range to {
		t := newTiling(shape, tile)
		tilings, shape = append(tilings, t), t.cut
	}
	have, want := x.Type.NumElements(), ir.Product(shape)
	x = b.Reshape(x, have)
	switch { // by less than a tile
	case have < want:
		x = b.Pad(x, zero(), []int{0}, []int{want - have}, []int{0})
	case have > want:
		x = b.Slice(x, []int{0}, []int{want})
	}
	x = b.Reshape(x, shape...)
	for _, t := range slices.Backward(tilings) {
		back := make([]int, len(t.perm))
		for i, d := range t.perm {
			back[d] = i
		}
		x = b.Reshape(b.Transpose(x, back...), t.padded...)
		x = b.Slice(x, make([]int, len(t.shape)), t.shape)
	}
	return x
}

// majorFirst is the order of dimensions whose reverse is given, or the default.
func majorFirst(minorFirst []int, rank int) []int {
	if len(minorFirst) != rank {
		return upTo(rank)
	}
	order := slices.Clone(minorFirst)
	slices.Reverse(order)
	return order
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
