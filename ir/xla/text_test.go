package xla

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ppc/ir"
)

// Shardings are one text of every form.
var Shardings = []string{
	"{replicated}", "{manual}", "{unreduced}", "{unknown}", "{maximal device=3}", "{maximal_mesh[device_id=1]}",
	"{devices=[2,2]<=[4]}", "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
	"{devices=[2,2]0,2,1,3}", "{devices=[2,3]0,3,1,4,2,5}", "{{replicated}, {devices=[2]0,1}}", "{{devices=[2,2]<=[4]}}", "{}", "{{}}",
	"{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}", "{devices=[1,2,2]<=[4] last_tile_dims={unreduced}}",
	"{mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}], unreduced=max{'b':(2)2}}", "{mesh['a'=2,'b'=2], [{'a','b'}, {}]}", "{mesh['a'=4], [{}, {?}], replicated={'a'}}",
	"{mesh['a'=2,'b'=2], [{'a'}, {}], manual={'b'}}", "{mesh['a'=2], manual, [{'a'}]}", "{mesh['a'=4], replicated}", "{mesh['a'=4], unreduced}",
	"{unknown shard_as 1 metadata={op_name=\"x{\"}}", "{devices=[2,2]<=[4] shard_like 0}",
}

// What is read is a tiling of all devices, whatever the text; and a mesh that is
// made of it gives every device the tile that the text does.
func FuzzSharding(f *testing.F) {
	for _, s := range Shardings {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parse(s)
		if err != nil {
			return
		}
		if p.kind != tiled || p.named != nil || ir.ProductUpTo(p.tiles, ir.MaxDevices) > 64 {
			return
		}
		mesh, err := meshOf([]*text{p}, ir.ProductUpTo(p.tiles, ir.MaxDevices), "mesh")
		if err == nil {
			sameTiles(t, mesh, p)
		}
	})
}

// sameTiles compares where devices stand by the sharding of p on mesh with where
// p puts them.
func sameTiles(t *testing.T, mesh *ir.Mesh, p *text) {
	t.Helper()
	rank := len(p.dims())
	s, _, err := p.sharding(mesh, rank, nil)
	if err != nil {
		t.Fatal(err)
	}
	for device, place := range p.places() {
		for d, n := range slices.Backward(p.tiles) {
			if d < rank && s.ShardIndex(mesh, device, d) != place%n {
				t.Fatalf("%s on %s: device %d has part %d of dimension %d, want %d", p.spelling, meshText(mesh), device, s.ShardIndex(mesh, device, d), d, place%n)
			}
			place /= n
		}
	}
}

// Random shardings over one random grid have a mesh, listed or not, in any
// numbering of the devices.
func TestMeshOfGrid(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		grid := []int{2, 3, 2, 4}[:1+r.IntN(4)]
		n := ir.ProductUpTo(grid, ir.MaxDevices)
		order := r.Perm(n)
		if seed%3 == 0 {
			order = nil
		}
		var all []*text
		for range 1 + r.IntN(3) {
			all = append(all, gridText(r, grid, order))
		}
		mesh, err := meshOf(all, n, "mesh")
		shown := slices.ContainsFunc(all, func(p *text) bool { return p.tiles[2] == 1 })
		if order != nil && err != nil && !shown {
			continue // groups of replicas do not show the order
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, p := range all {
			sameTiles(t, mesh, p)
		}
	}
}

// gridText tiles two dimensions along dimensions of a grid, and leaves the rest
// to replicas.
func gridText(r *rand.Rand, grid, order []int) *text {
	t := &text{kind: tiled, grid: grid, perm: r.Perm(len(grid)), tiles: []int{1, 1, 1}, groups: []textKind{replicated}}
	at := 0
	for _, d := range t.perm {
		if at < 2 && r.IntN(2) == 0 {
			at++
		}
		t.tiles[at] *= grid[d]
	}
	if order == nil && r.IntN(2) == 0 {
		return t
	}
	list := make([]int, ir.ProductUpTo(grid, ir.MaxDevices))
	for i := range list {
		list[i] = t.device0(i)
		if order != nil {
			list[i] = order[list[i]]
		}
	}
	t.list, t.grid, t.perm = list, nil, nil
	return t
}
