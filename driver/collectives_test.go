package driver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ppc/ir"
	"ppc/ir/eval"
	"ppc/lower/hlo"
	"ppc/runtime"
)

// A grid is a tensor of two dimensions.
type grid struct {
	shape [2]int
	at    []int
}

func newGrid(shape [2]int) grid { return grid{shape, make([]int, shape[0]*shape[1])} }

func (g grid) String() string { return fmt.Sprintf("s32[%d,%d]", g.shape[0], g.shape[1]) }

// each visits the places of g.
func (g grid) each(visit func(i [2]int, x *int)) {
	for k := range g.at {
		visit([2]int{k / g.shape[1], k % g.shape[1]}, &g.at[k])
	}
}

// part is the i-th of n parts along dim.
func (g grid) part(dim, i, n int) grid {
	shape := g.shape
	shape[dim] /= n
	out := newGrid(shape)
	out.each(func(at [2]int, x *int) {
		at[dim] += i * shape[dim]
		*x = g.at[at[0]*g.shape[1]+at[1]]
	})
	return out
}

// joined is gs side by side along dim.
func joined(dim int, gs []grid) grid {
	shape := gs[0].shape
	n := shape[dim]
	shape[dim] *= len(gs)
	out := newGrid(shape)
	out.each(func(at [2]int, x *int) {
		g := gs[at[dim]/n]
		at[dim] %= n
		*x = g.at[at[0]*g.shape[1]+at[1]]
	})
	return out
}

// folded combines gs element by element.
func folded(gs []grid, by func(a, b int) int) grid {
	out := grid{gs[0].shape, slices.Clone(gs[0].at)}
	for _, g := range gs[1:] {
		for k, x := range g.at {
			out.at[k] = by(out.at[k], x)
		}
	}
	return out
}

// A hloCollective is one collective of an HLO program on replicas of
// partitions, and what it means.
type hloCollective struct {
	r                    *rand.Rand
	replicas, partitions int
	mode                 string // what the numbers in groups are
	groups               [][]int
	in                   [][]grid // by device
	dim                  int
	opcode, attrs        string
	out                  [][]grid // by device
}

// numbers is how many different ones there may be in groups.
func (c *hloCollective) numbers() int {
	return map[string]int{"replica": c.replicas, "both": c.replicas, "partition": c.partitions, "global": c.replicas * c.partitions}[c.mode]
}

// members are the devices of the group of device d, in its order; nil if it is
// in none.
func (c *hloCollective) members(d int) []int {
	replica, partition := d/c.partitions, d%c.partitions
	me := map[string]int{"replica": replica, "both": replica, "partition": partition, "global": d}[c.mode]
	i := slices.IndexFunc(c.groups, func(g []int) bool { return slices.Contains(g, me) })
	if i < 0 {
		return nil
	}
	var out []int
	for _, n := range c.groups[i] {
		switch c.mode {
		case "replica":
			out = append(out, n*c.partitions+partition)
		case "partition":
			out = append(out, replica*c.partitions+n)
		case "global":
			out = append(out, n)
		case "both":
			for p := range c.partitions {
				out = append(out, n*c.partitions+p)
			}
		}
	}
	return out
}

// size is that of every group, in devices.
func (c *hloCollective) size() int { return len(c.members(0)) }

// listed is groups as text.
func listed(groups [][]int) string {
	return strings.ReplaceAll(strings.Trim(strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(groups), "[[", "{{"), "]]", "}}"), "[]"), "] [", "},{")
}

// choose chooses groups of one size and says them in one of the ways of HLO.
func (c *hloCollective) choose() string {
	n := c.numbers()
	var sizes []int
	for k := 1; k <= n; k++ {
		if n%k == 0 {
			sizes = append(sizes, k)
		}
	}
	size := sizes[c.r.IntN(len(sizes))]
	switch {
	case c.mode != "global" && c.mode != "partition" && c.r.IntN(4) == 0: // all of them
		c.groups = [][]int{make([]int, n)}
		for i := range n {
			c.groups[0][i] = i
		}
		return "{}"
	case c.r.IntN(2) == 0: // a grid with its dimensions in another order
		k := sizes[c.r.IntN(len(sizes))]
		dims := []int{k, n / k}
		perm := c.r.Perm(2)
		var order []int
		for i := range dims[perm[0]] {
			for j := range dims[perm[1]] {
				at := [2]int{}
				at[perm[0]], at[perm[1]] = i, j
				order = append(order, at[0]*dims[1]+at[1])
			}
		}
		c.groups = slices.Collect(slices.Chunk(order, size))
		return fmt.Sprintf("[%d,%d]<=[%d,%d]T(%d,%d)", n/size, size, dims[0], dims[1], perm[0], perm[1])
	}
	c.groups = slices.Collect(slices.Chunk(c.r.Perm(n), size))
	return commas(listed(c.groups))
}

func commas(text string) string { return strings.ReplaceAll(text, " ", ",") }

// unequal are groups of any sizes.
func (c *hloCollective) unequal() string {
	c.groups = nil
	for ids := c.r.Perm(c.numbers()); len(ids) > 0; {
		n := 1 + c.r.IntN(len(ids))
		c.groups, ids = append(c.groups, ids[:n]), ids[n:]
	}
	return commas(listed(c.groups))
}

// missing are groups that some numbers are in none of.
func (c *hloCollective) missing() string {
	ids := c.r.Perm(c.numbers())
	n := 1 + c.r.IntN(len(ids))
	c.groups = slices.Collect(slices.Chunk(ids[:len(ids)/n*n], n))[:1+c.r.IntN(len(ids)/n)]
	return commas(listed(c.groups))
}

// operands makes k operands of random numbers, whose size along dim is a
// multiple of n.
func (c *hloCollective) operands(k, n int) {
	c.in = make([][]grid, c.replicas*c.partitions)
	for range k {
		shape := [2]int{1 + c.r.IntN(3), 1 + c.r.IntN(3)}
		shape[c.dim] *= n
		for d := range c.in {
			g := newGrid(shape)
			g.each(func(_ [2]int, x *int) { *x = c.r.IntN(100) })
			c.in[d] = append(c.in[d], g)
		}
	}
}

// results sets what each device has: for operand k, of what the members of its
// group have, in which it is number at.
func (c *hloCollective) results(one func(k, at int, of []grid) grid) {
	c.out = make([][]grid, len(c.in))
	for d := range c.out {
		members := c.members(d)
		for k, x := range c.in[d] {
			if members == nil {
				c.out[d] = append(c.out[d], newGrid(x.shape))
				continue
			}
			var of []grid
			for _, m := range members {
				of = append(of, c.in[m][k])
			}
			c.out[d] = append(c.out[d], one(k, slices.Index(members, d), of))
		}
	}
}

// A fold is how numbers are combined.
type fold struct {
	name string
	by   func(a, b int) int
}

func (c *hloCollective) fold() fold {
	return []fold{{"add", func(a, b int) int { return a + b }}, {"maximum", func(a, b int) int { return max(a, b) }}, {"minimum", func(a, b int) int { return min(a, b) }}}[c.r.IntN(3)]
}

// hloCollectives are the kinds of collectives, each with what may be the
// numbers in its groups.
var hloCollectives = []struct {
	opcode string
	modes  []string
	make   func(c *hloCollective)
}{
	{"all-reduce", []string{"replica", "both", "global"}, func(c *hloCollective) {
		groups, by := c.choose(), c.fold()
		if c.r.IntN(3) == 0 {
			groups = c.unequal()
		}
		c.operands(1+c.r.IntN(3), 1)
		c.attrs = "replica_groups=" + groups + ", to_apply=" + by.name
		c.results(func(_, _ int, of []grid) grid { return folded(of, by.by) })
	}},
	{"all-gather", []string{"replica", "both", "global"}, func(c *hloCollective) {
		c.attrs = "replica_groups=" + c.choose() + fmt.Sprintf(", dimensions={%d}", c.dim)
		c.operands(1+c.r.IntN(2), 1)
		c.results(func(_, _ int, of []grid) grid { return joined(c.dim, of) })
	}},
	{"reduce-scatter", []string{"replica", "both", "global"}, func(c *hloCollective) {
		groups, by := c.choose(), c.fold()
		c.attrs = "replica_groups=" + groups + fmt.Sprintf(", dimensions={%d}, to_apply=%s", c.dim, by.name)
		c.operands(1, c.size())
		c.results(func(_, at int, of []grid) grid { return folded(of, by.by).part(c.dim, at, len(of)) })
	}},
	{"all-to-all", []string{"replica", "partition"}, func(c *hloCollective) {
		c.attrs = "replica_groups=" + c.choose()
		n := c.size()
		if c.r.IntN(2) == 0 { // an operand for each device
			c.operands(1, 1)
			for d := range c.in {
				for range n - 1 {
					g := newGrid(c.in[d][0].shape)
					g.each(func(_ [2]int, x *int) { *x = c.r.IntN(100) })
					c.in[d] = append(c.in[d], g)
				}
			}
			c.out = make([][]grid, len(c.in))
			for d := range c.out {
				members := c.members(d)
				for _, m := range members {
					c.out[d] = append(c.out[d], c.in[m][slices.Index(members, d)])
				}
			}
			return
		}
		c.attrs += fmt.Sprintf(", dimensions={%d}", c.dim)
		c.operands(1, n)
		c.results(func(_, at int, of []grid) grid {
			for i := range of {
				of[i] = of[i].part(c.dim, at, n)
			}
			return joined(c.dim, of)
		})
	}},
	{"collective-broadcast", []string{"replica", "partition"}, func(c *hloCollective) {
		c.attrs = "replica_groups=" + c.missing()
		c.operands(1, 1)
		c.results(func(_, _ int, of []grid) grid { return of[0] })
	}},
	{"collective-permute", []string{"replica", "partition"}, func(c *hloCollective) {
		n := c.numbers()
		from, to := c.r.Perm(n), c.r.Perm(n)
		for i := range 1 + c.r.IntN(n) {
			c.groups = append(c.groups, []int{from[i], to[i]})
		}
		c.attrs = "source_target_pairs=" + commas(listed(c.groups))
		c.operands(1, 1)
		pairs := c.groups
		c.out = make([][]grid, len(c.in))
		for d := range c.out {
			c.out[d] = []grid{newGrid(c.in[d][0].shape)}
		}
		for d := range c.in {
			for _, p := range pairs {
				c.groups = [][]int{p}
				if members := c.members(d); members != nil && members[0] == d {
					c.out[members[1]] = c.in[d]
				}
			}
		}
	}},
}

// tupled is types as one type.
func tupled(gs []grid) string {
	var parts []string
	for _, g := range gs {
		parts = append(parts, g.String())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// program is the text of a program of the collective alone: as one instruction,
// or split in time, by opcodes of its own or the general ones.
func (c *hloCollective) program() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HloModule test, replica_count=%d, num_partitions=%d\n\n", c.replicas, c.partitions)
	for _, by := range []string{"add", "maximum", "minimum"} {
		fmt.Fprintf(&b, "%s {\n  x = s32[] parameter(0)\n  y = s32[] parameter(1)\n  ROOT z = s32[] %s(x, y)\n}\n\n", by, by)
	}
	var names, params []string
	for k, x := range c.in[0] {
		names = append(names, fmt.Sprint("p", k))
		params = append(params, fmt.Sprintf("  p%d = %s parameter(%d)\n", k, x, k))
	}
	in, out, call := tupled(c.in[0]), tupled(c.out[0]), fmt.Sprintf("(%s), %s", strings.Join(names, ", "), c.attrs)
	inTuple := "(" + strings.Trim(in, "()") + ")"
	own := map[string]string{"all-reduce": out, "all-gather": "(" + in + ", " + out + ")", "collective-permute": "(" + in + ", " + out + ")"}[c.opcode]
	entry := func(lines string) { fmt.Fprintf(&b, "ENTRY main {\n%s%s}\n", strings.Join(params, ""), lines) }
	switch form := c.r.IntN(4); {
	case form == 0 && own != "":
		entry(fmt.Sprintf("  start = %s %s-start%s\n  ROOT done = %s %s-done(start)\n", own, c.opcode, call, out, c.opcode))
	case form == 0:
		entry(fmt.Sprintf("  start = (%s, %s, s32[]) %s-start%s\n  ROOT done = %s %s-done(start)\n", inTuple, out, c.opcode, call, out, c.opcode))
	case form == 1:
		fmt.Fprintf(&b, "wrapped {\n%s  ROOT r = %s %s%s\n}\n\n", strings.Join(params, ""), out, c.opcode, call)
		entry(fmt.Sprintf("  start = (%s, %s, s32[]) async-start(%s), calls=wrapped\n  ROOT done = %s async-done(start)\n", inTuple, out, strings.Join(names, ", "), out))
	default:
		entry(fmt.Sprintf("  ROOT r = %s %s%s\n", out, c.opcode, call))
	}
	return b.String()
}

// randomCollective makes one.
func randomCollective(seed uint64) *hloCollective {
	r := rand.New(rand.NewPCG(seed, 17))
	kind := hloCollectives[r.IntN(len(hloCollectives))]
	c := &hloCollective{r: r, replicas: 1 + r.IntN(4), partitions: 1 + r.IntN(4), dim: r.IntN(2), opcode: kind.opcode, mode: kind.modes[r.IntN(len(kind.modes))]}
	if c.replicas == 1 && c.mode == "replica" { // numbers are devices, whichever a program has
		c.partitions = 1
	}
	kind.make(c)
	if c.mode != "replica" {
		c.attrs += ", channel_id=1"
	}
	if c.mode == "global" {
		c.attrs += ", use_global_device_ids=true"
	}
	return c
}

// literals are the numbers of gs.
func literals(gs []grid) []*ir.Literal {
	var out []*ir.Literal
	for _, g := range gs {
		out = append(out, ir.Ints64(ir.Tensor(ir.I32, g.shape[:]...), g.at...))
	}
	return out
}

// Collectives of HLO, of every kind, among replicas, partitions or both, in
// groups said in every way, at once or split in time, give what their
// definition says: read and evaluated, and run.
func TestCollectivesOfHLO(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(800) {
		c := randomCollective(seed)
		text := c.program()
		if err := c.runs(t, text); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, text)
			continue
		}
		seen[c.opcode+" "+c.mode]++
	}
	for _, kind := range hloCollectives {
		for _, mode := range kind.modes {
			if seen[kind.opcode+" "+mode] < 10 {
				t.Errorf("%d times %s of %s, want 10", seen[kind.opcode+" "+mode], kind.opcode, mode)
			}
		}
	}
}

// runs reads text, evaluates and runs it, and compares.
func (c *hloCollective) runs(t *testing.T, text string) error {
	m, err := hlo.Parse("test.hlo", []byte(text))
	if err != nil {
		return err
	}
	full, err := hlo.Unfuse(m)
	if err != nil {
		return err
	}
	args := make([][]*ir.Literal, len(c.in))
	for d := range args {
		args[d] = literals(c.in[d])
	}
	for name, run := range map[string]func() ([][]*ir.Literal, error){
		"evaluated": func() ([][]*ir.Literal, error) { return eval.RunDevices(full, full.Main(), args, eval.Options{}) },
		"run": func() ([][]*ir.Literal, error) {
			exe, err := runtime.Load(full)
			if err != nil {
				return nil, err
			}
			return exe.Run(t.Context(), args)
		},
	} {
		got, err := run()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for d := range c.out {
			for k, want := range literals(c.out[d]) {
				if g := got[d][k]; !g.Type.Equal(want.Type) || !slices.Equal(g.Expand(), want.Expand()) {
					return fmt.Errorf("%s: device %d, result %d: %s %v, want %s", name, d, k, g.Type, g.Data, want)
				}
			}
		}
	}
	return nil
}
