package xla

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// sharded is the attributes with a sharding: mhlo.sharding in StableHLO, sharding
// in HLO text.
var sharded = []string{"mhlo.sharding", "hlo.sharding"}

// Custom calls of GSPMD.
const (
	constrains = "Sharding"
	toShard    = "SPMDFullToShardShape"
	toFull     = "SPMDShardToFullShape"
)

func isCall(op *ir.Op, target string) bool {
	return op.Kind == ir.CustomCall && op.Str("call_target_name") == target
}

// shardingOf is the text of a sharding among attributes, and the attribute that
// has it.
func shardingOf(as ir.Attrs) (s, name string) {
	for _, name := range sharded {
		if s, ok := as.Get(name).(ir.Str); ok {
			return string(s), name
		}
	}
	return "", ""
}

// shardings makes the shardings of GSPMD Shardy's.
func (im *importer) shardings() {
	im.texts = make(map[string]*text)
	var all []*text
	var first *ir.Origin
	im.each(func(what string, o *ir.Origin, as ir.Attrs) {
		s, name := shardingOf(as)
		if name == "" || im.texts[s] != nil {
			return
		}
		if first == nil {
			first = o
		}
		t, err := parse(s)
		if err != nil {
			im.errorf(o, "%s: %s %v", what, name, err)
			return
		}
		im.texts[s] = t
		all = append(all, t)
		all = append(all, t.tuple...)
	})
	if len(im.errs) > 0 || len(im.texts) == 0 && !im.hasCalls() {
		return
	}
	if im.mesh = im.findMesh(first, all); im.mesh == nil {
		return
	}
	im.m.Meshes = append(im.m.Meshes, im.mesh)
	for _, f := range im.m.Funcs {
		im.function(f)
	}
}

// saysShardings reports whether anything in the program has a sharding of GSPMD.
func (im *importer) saysShardings() bool {
	found := false
	im.each(func(_ string, _ *ir.Origin, as ir.Attrs) {
		_, name := shardingOf(as)
		found = found || name != ""
	})
	return found
}

func (im *importer) hasCalls() bool {
	found := false
	for _, f := range im.m.Funcs {
		if f.Body != nil && im.has.calls {
			f.Body.Walk(func(op *ir.Op) {
				found = found || isCall(op, constrains) || isCall(op, toShard) || isCall(op, toFull)
			})
		}
	}
	return found
}

// findMesh is the mesh of all the shardings of the program; nil after an error.
func (im *importer) findMesh(o *ir.Origin, all []*text) *ir.Mesh {
	if i := slices.IndexFunc(im.m.Meshes, func(mesh *ir.Mesh) bool { return len(mesh.Axes) > 0 }); i >= 0 {
		im.errorf(o, "the program has shardings of GSPMD (mhlo.sharding) beside the mesh %s of Shardy: which of the two holds is not known; export it with one", ir.SymbolText(im.m.Meshes[i].Name))
		return nil
	}
	n := im.m.Attrs.Int("mhlo.num_partitions")
	var tilings []*text
	var named *ir.Mesh
	for _, t := range all {
		if t.kind != tiled {
			continue
		}
		size := ir.ProductUpTo(t.tiles, ir.MaxDevices)
		if t.named != nil {
			size = t.mesh.Size()
			if named != nil && !slices.Equal(named.Axes, t.mesh.Axes) {
				im.errorf(o, "the shardings name two meshes, %s and %s; state all over one", meshText(named), meshText(t.mesh))
				return nil
			}
			named = t.mesh
		} else {
			tilings = append(tilings, t)
		}
		if n <= 1 {
			n = size
		}
		if size != n {
			im.errorf(o, "the sharding %s is over %d devices, the program over %d", t.spelling, size, n)
			return nil
		}
	}
	if replicas := im.m.Attrs.Int("mhlo.num_replicas"); replicas > 1 && n > 1 {
		im.errorf(o, "the program has %d replicas of %d partitions: only one replica is compiled; set mhlo.num_replicas to 1", replicas, n)
		return nil
	}
	if n > 1 {
		im.m.Attrs.Set("mhlo.num_partitions", ir.Int{Value: n, Type: ir.I32})
	}
	name := im.m.Unused("mesh")
	if named != nil {
		named.Name = name
		return named
	}
	mesh, err := meshOf(tilings, max(n, 1), name)
	if err != nil {
		im.errorf(o, "%v", err)
		return nil
	}
	return mesh
}

// function converts all sharding attributes of f to Shardy's.
func (im *importer) function(f *ir.Func) {
	value := func(what string, t *ir.Type, as *ir.Attrs) *ir.Sharding {
		s, name := shardingOf(*as)
		if name == "" {
			return nil
		}
		as.Delete(name)
		if len(*as) == 0 {
			*as = nil
		}
		if f == im.m.Main() && im.texts[s].has(manual) {
			im.errorf(f.Origin, "%s: %s is of values between SPMDFullToShardShape and SPMDShardToFullShape, where the program is local; state the sharding of the global value", what, s)
			return nil
		}
		return im.of(what, f.Origin, im.texts[s], t, nil)
	}
	for i, v := range f.Params() {
		v.Sharding = value(fmt.Sprintf("parameter %d of %s", i, ir.SymbolText(f.Name)), v.Type, &v.Attrs)
	}
	for i := range f.Results {
		r := &f.Results[i]
		r.Sharding = value(fmt.Sprintf("result %d of %s", i, ir.SymbolText(f.Name)), r.Type, &r.Attrs)
	}
	im.results(f)
	if f.Body == nil {
		return
	}
	im.manualRegions(f)
	im.constraints(f)
	f.Body.Walk(im.op)
}

// results takes the shardings of f's results from the attributes of f, where HLO
// text has those of a tuple.
func (im *importer) results(f *ir.Func) {
	s, name := shardingOf(f.Attrs)
	if name == "" {
		return
	}
	f.Attrs.Delete(name)
	t := im.texts[s]
	if t.kind == tuple && len(t.tuple) != len(f.Results) {
		im.errorf(f.Origin, "%s has %s, its sharding %s is of %d", ir.SymbolText(f.Name), counted(len(f.Results), "result"), s, len(t.tuple))
		return
	}
	for i := range f.Results {
		e := t
		if t.kind == tuple {
			e = t.tuple[i]
		}
		f.Results[i].Sharding = im.of(fmt.Sprintf("result %d of %s", i, ir.SymbolText(f.Name)), f.Origin, e, f.Results[i].Type, nil)
	}
}

// op takes the sharding of op's results from its attributes.
func (im *importer) op(op *ir.Op) {
	s, name := shardingOf(op.Attrs)
	if name == "" {
		return
	}
	op.Attrs.Delete(name)
	each := im.texts[s].tuple
	if im.texts[s].kind != tuple {
		each = slices.Repeat([]*text{im.texts[s]}, len(op.Results))
	}
	if len(each) != len(op.Results) && len(op.Results) > 0 {
		im.errorf(op.Origin, "%s has %s, its sharding %s is of %d", op.Name(), counted(len(op.Results), "result"), s, len(each))
		return
	}
	for i, v := range op.Results {
		v.Sharding = im.of(fmt.Sprintf("result %d of %s", i, op.Name()), op.Origin, each[i], v.Type, nil)
	}
}

// of is t as a sharding of a value of type typ; nil if it does not constrain the
// value.
func (im *importer) of(what string, o *ir.Origin, t *text, typ *ir.Type, open []int) *ir.Sharding {
	if t.kind == tuple && len(t.tuple) == 1 {
		t = t.tuple[0]
	}
	if !typ.IsTensor() {
		return nil
	}
	switch t.kind {
	case replicated:
		return opened(ir.Replicated(im.mesh.Name, typ.Rank()), open)
	case maximal:
		if n := im.mesh.Size(); t.device >= n {
			im.errorf(o, "%s: %s names a device beyond the %d of the program", what, t.spelling, n)
			return nil
		}
		return &ir.Sharding{Mesh: im.maximal(t.device), Dims: []ir.DimSharding{}}
	case unreduced:
		s := ir.Replicated(im.mesh.Name, typ.Rank())
		for _, a := range im.mesh.Axes {
			s.Unreduced = append(s.Unreduced, ir.Ax(a.Name))
		}
		return s
	case tiled:
		s, _, err := t.sharding(im.mesh, typ.Rank(), open)
		if err != nil {
			im.errorf(o, "%s: %v", what, err)
		}
		return s
	case tuple:
		im.errorf(o, "%s: %s is of a tuple of %d, want one sharding", what, t.spelling, len(t.tuple))
	}
	return nil
}

// opened is s with dimensions that propagation may shard further.
func opened(s *ir.Sharding, dims []int) *ir.Sharding {
	for _, d := range dims {
		if d < len(s.Dims) {
			s.Dims[d].Open = true
		}
	}
	return s
}

// maximal is the mesh that is one device alone.
func (im *importer) maximal(device int) string {
	for _, mesh := range im.m.Meshes {
		if len(mesh.Axes) == 0 && slices.Equal(mesh.DeviceIDs, []int{device}) {
			return mesh.Name
		}
	}
	name := im.m.Unused(fmt.Sprintf("maximal_mesh_%d", device))
	im.m.Meshes = append(im.m.Meshes, &ir.Mesh{Name: name, DeviceIDs: []int{device}})
	return name
}

// constraints converts the custom calls that state the sharding of their operand to
// constraints.
func (im *importer) constraints(f *ir.Func) {
	sub := f.NewSubst()
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		out := &ir.Block{}
		for _, op := range b.Ops {
			sub.Apply(op.Operands)
			for _, r := range op.Regions {
				block(r)
			}
			if !isCall(op, constrains) {
				out.Ops = append(out.Ops, op)
				continue
			}
			if v := im.constraint(&ir.Builder{Func: f, Block: out, Origin: op.Origin}, op); v != nil {
				sub[op.Result().ID] = v
			}
		}
		b.Ops = out.Ops
	}
	block(f.Body)
}

// constraint is the operand of op, constrained to the sharding that op states; nil
// after an error.
func (im *importer) constraint(b *ir.Builder, op *ir.Op) *ir.Value {
	s, name := shardingOf(op.Attrs)
	if len(op.Operands) != 1 || len(op.Results) != 1 || !op.Operands[0].Type.Equal(op.Result().Type) || name == "" {
		im.errorf(op.Origin, "custom_call @%s: want one operand, one result of its type, and a sharding", constrains)
		return nil
	}
	open, err := openDims(op)
	if err != nil {
		im.errorf(op.Origin, "custom_call @%s: %v", constrains, err)
		return nil
	}
	t, v := im.texts[s], op.Operands[0]
	if d := im.of("custom_call @"+constrains, op.Origin, t, v.Type, open); d != nil {
		c := b.Emit(ir.ShardingConstraint, []*ir.Value{v}, ir.AttrsOf(ir.NamedAttr{Name: "sharding", Attr: d}), nil, nil)
		v = c.Result()
		v.Name = op.Result().Name
	}
	if t.alike > 0 && v.Type.IsTensor() {
		b.Emit(ir.ShardingGroup, []*ir.Value{v}, ir.AttrsOf(ir.NamedAttr{Name: "group_id", Attr: ir.I64Attr(t.alike - 1)}), nil, nil)
	}
	return v
}

// openDims are the dimensions that the backend_config of op leaves open:
// unspecified_dims=[0,2].
func openDims(op *ir.Op) ([]int, error) {
	config := op.Str("backend_config")
	if config == "" {
		return nil, nil
	}
	list, begins := strings.CutPrefix(config, "unspecified_dims=[")
	list, ends := strings.CutSuffix(list, "]")
	if !begins || !ends {
		return nil, fmt.Errorf("backend_config %q is not read, want unspecified_dims=[…]", config)
	}
	if len(op.Operands) != 1 || !op.Operands[0].Type.IsTensor() {
		return nil, fmt.Errorf("backend_config %q is of one operand, a tensor", config)
	}
	var dims []int
	t := op.Operands[0].Type
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 || n >= t.Rank() {
			return nil, fmt.Errorf("backend_config %q: %q is no dimension of %s", config, word, t)
		}
		dims = append(dims, n)
	}
	return dims, nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
