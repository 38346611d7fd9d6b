package runtime

import (
	"encoding/binary"
	"fmt"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// meetings says what the members of a group make of their operands, by op.
var meetings = map[ir.Kind]func(*compiler, *step) error{
	ir.AllGather:           compileAllGather,
	ir.AllReduce:           compileAllReduce,
	ir.ReduceScatter:       compileReduceScatter,
	ir.AllToAll:            compileAllToAll,
	ir.CollectiveBroadcast: compileBroadcast,
}

// groupSize is the size that all groups have; every device must be in one.
func (c *collective) groupSize() (int, error) {
	n := len(c.groups[0])
	for _, g := range c.groups {
		if len(g) != n {
			return 0, fmt.Errorf("replica_groups has groups of %d and of %d devices", n, len(g))
		}
	}
	return n, c.covered()
}

func (c *collective) covered() error {
	for d, g := range c.group {
		if g < 0 {
			return fmt.Errorf("device %d is in no group of replica_groups", d)
		}
	}
	return nil
}

// split is a tensor split along one dimension, as outer x parts x inner bytes.
type split struct{ outer, inner int }

// newSplit splits tensors of the type of a part.
func newSplit(part *ir.Type, dim int) split {
	s := split{outer: 1, inner: part.Elem.Size()}
	for d, n := range part.Shape {
		if d < dim {
			s.outer *= n
		} else {
			s.inner *= n
		}
	}
	return s
}

func compileAllGather(c *compiler, s *step) error {
	n, err := s.coll.groupSize()
	if err != nil {
		return err
	}
	dim := s.op.Int("all_gather_dim")
	splits := make([]split, len(s.op.Operands))
	panelled := make([]*panelled, len(splits))
	for i, v := range s.op.Operands {
		splits[i] = newSplit(v.Type, dim)
		panelled[i] = c.panelled(s, i, dim)
		if have, want := s.op.Results[i].Type.Shape[dim], v.Type.Shape[dim]*n; have != want {
			return fmt.Errorf("dimension %d of the result has size %d, groups of %d make %d", dim, have, n, want)
		}
	}
	s.coll.together = func(d *device, s *step, parts [][]*buffer) []*buffer {
		results := make([]*buffer, len(splits))
		for i, sp := range splits {
			switch {
			case panelled[i] != nil:
				results[i] = d.gathered(s, parts, i, func() *buffer { return panelled[i].gather(d, parts, i) })
			case n == 1:
				results[i] = parts[0][i].retain()
			default:
				results[i] = d.gathered(s, parts, i, func() *buffer {
					b := d.alloc(s.classes[i])
					for p, part := range parts {
						if sp.inner > 0 && sp.outer > 0 {
							kernel.MoveRows(b.mem[p*sp.inner:], n*sp.inner, part[i].mem, sp.inner, sp.inner, sp.outer)
						}
					}
					return b
				})
			}
		}
		return results
	}
	return nil
}

func retainAll(bs []*buffer) []*buffer {
	out := make([]*buffer, len(bs))
	for i, b := range bs {
		out[i] = b.retain()
	}
	return out
}

// combiner returns the Func of the op's region.
func combiner(s *step) (kernel.Func, error) {
	if len(s.op.Captures()) > 0 {
		return nil, fmt.Errorf("the region uses values from outside")
	}
	b := s.op.Regions[0]
	if len(b.Args) != 2 || len(b.Terminator().Operands) != 1 {
		return nil, fmt.Errorf("the region takes %d values and returns %d, want 2 and 1", len(b.Args), len(b.Terminator().Operands))
	}
	for _, v := range append(s.op.Operands[:len(s.op.Results):len(s.op.Results)], b.Args[1], b.Terminator().Operands[0]) {
		if v.Type.Elem != b.Args[0].Type.Elem {
			return nil, fmt.Errorf("the region combines %s, not %s", b.Args[0].Type.Elem, v.Type.Elem)
		}
	}
	return kernel.Combiner(b)
}

func compileAllReduce(_ *compiler, s *step) error {
	f, err := combiner(s)
	if err != nil {
		return err
	}
	if err := s.coll.covered(); err != nil {
		return err
	}
	s.coll.together = func(d *device, s *step, parts [][]*buffer) []*buffer {
		if len(parts) == 1 {
			return retainAll(parts[0])
		}
		results := make([]*buffer, len(s.classes))
		for i := range results {
			acc := parts[0][i]
			if acc.mine() {
				parts[0][i] = nil
			} else {
				first := acc
				acc = d.alloc(s.classes[i])
				copy(acc.mem, first.mem)
			}
			for _, part := range parts[1:] {
				d.work.Fold(f, acc.mem, part[i].mem)
			}
			results[i] = acc
		}
		return results
	}
	return nil
}

// shortRow is how many bytes of a row are few to be moved by themselves: less than a line of
// the caches.
const shortRow = 64

// A scattering makes the parts of a sum that the devices of a group take.
type scattering struct {
	f kernel.Func
	n int // devices
	split
}

func compileReduceScatter(c *compiler, s *step) error {
	x, err := newScattering(c, s)
	if err != nil {
		return err
	}
	s.coll.own = func(d *device, s *step, parts [][]*buffer, place int) []*buffer {
		acc := d.alloc(s.classes[0])
		d.work.FoldParts(x.f, acc.mem, d.firsts(parts), place*x.inner, x.n*x.inner, x.inner)
		return []*buffer{acc}
	}
	return nil
}

func newScattering(c *compiler, s *step) (*scattering, error) {
	f, err := combiner(s)
	if err != nil {
		return nil, err
	}
	n, err := s.coll.groupSize()
	if err != nil {
		return nil, err
	}
	dim, in, out := s.op.Int("scatter_dimension"), s.op.Operands[0].Type, s.op.Result().Type
	if in.Shape[dim] != out.Shape[dim]*n {
		return nil, fmt.Errorf("dimension %d of the operand has size %d, groups of %d make %d", dim, in.Shape[dim], n, out.Shape[dim]*n)
	}
	x := &scattering{f, n, newSplit(out, dim)}
	if x.inner < shortRow && n > 2 { // the sums are made of contiguous parts, and each device takes its own
		full := c.exe.classes.of(in.Bytes())
		s.coll.before = func(d *device, parts [][]*buffer) []*buffer {
			acc := d.alloc(full)
			d.work.FoldParts(f, acc.mem, d.firsts(parts), 0, len(acc.mem), len(acc.mem))
			return []*buffer{acc}
		}
	}
	return x, nil
}

// firsts is the memory of the first operand of each device.
func (d *device) firsts(parts [][]*buffer) []kernel.Mem {
	d.src = d.src[:0]
	for _, part := range parts {
		d.src = append(d.src, part[0].mem)
	}
	return d.src
}

func compileAllToAll(_ *compiler, s *step) error {
	n, err := s.coll.groupSize()
	if err != nil {
		return err
	}
	if count := s.op.Int("split_count"); count != n {
		return fmt.Errorf("split_count is %d, the groups have %d devices", count, n)
	}
	splitDim, concatDim := s.op.Int("split_dimension"), s.op.Int("concat_dimension")
	moves := make([]*kernel.Exchange, len(s.op.Operands))
	for i, v := range s.op.Operands {
		moves[i] = kernel.NewExchange(v.Type, s.op.Results[i].Type, splitDim, concatDim, n)
	}
	s.coll.own = func(d *device, s *step, parts [][]*buffer, place int) []*buffer {
		results := make([]*buffer, len(moves))
		for i, m := range moves {
			results[i] = d.alloc(s.classes[i])
			for p, part := range parts {
				m.Run(results[i].mem, part[i].mem, p, place)
			}
		}
		return results
	}
	return nil
}

// compileBroadcast: the root of each operand is the group's first device, or the
// one of the group that a last operand says, held within the group.
func compileBroadcast(c *compiler, s *step) error {
	n := len(s.op.Results)
	if n > 1 {
		if err := s.coll.covered(); err != nil {
			return err
		}
	} else {
		s.coll.zeros = c.zeros(s.op.Result().Type)
	}
	if !s.op.Bool("has_dynamic_root") {
		s.coll.together = func(_ *device, _ *step, parts [][]*buffer) []*buffer { return retainAll(parts[0]) }
		return nil
	}
	s.coll.together = func(_ *device, _ *step, parts [][]*buffer) []*buffer {
		out := make([]*buffer, n)
		for i := range out {
			root := int(int32(binary.LittleEndian.Uint32(parts[0][n].mem[4*i:])))
			out[i] = parts[min(max(root, 0), len(parts)-1)][i].retain()
		}
		return out
	}
	return nil
}

// compileCollectiveReduce gives the root of each operand what its group combines, and
// the others zeros. The root is the group's first device, or the one of the group
// that a last operand says.
func compileCollectiveReduce(c *compiler, s *step) error {
	groups, err := c.grid.groups(s.op)
	if err != nil {
		return err
	}
	coll := c.collective(s)
	coll.groups = groups
	coll.group, coll.place = places(groups, c.grid.size())
	f, err := combiner(s)
	if err != nil {
		return err
	}
	if len(s.op.Results) > 1 {
		if err := coll.covered(); err != nil {
			return err
		}
	} else {
		coll.zeros = c.zeros(s.op.Result().Type)
	}
	n, dynamic := len(s.op.Results), s.op.Bool("has_dynamic_root")
	zeros := make([]*buffer, n)
	for i, v := range s.op.Results {
		zeros[i] = c.zeros(v.Type)
	}
	coll.own = func(d *device, s *step, parts [][]*buffer, place int) []*buffer {
		results := make([]*buffer, n)
		for i := range results {
			root := 0
			if dynamic {
				root = int(int32(binary.LittleEndian.Uint32(parts[place][n].mem[4*i:])))
			}
			if results[i] = zeros[i]; root != place {
				continue
			}
			acc := d.alloc(s.classes[i])
			copy(acc.mem, parts[0][i].mem)
			for _, part := range parts[1:] {
				d.work.Fold(f, acc.mem, part[i].mem)
			}
			results[i] = acc
		}
		return results
	}
	s.exec = execMeeting
	return nil
}
