package hlo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// deviceMesh is the mesh of a program whose text numbers devices: one axis.
// What the text tiles them by are parts of it.
const deviceMesh, deviceAxis = "mesh", "d"

// ReadShardings makes what HLO's attribute sharding says of the parameters and
// values of a global program, which [Parse] keeps as text, their shardings, on
// a mesh of one axis of all partitions. Where the program names devices by a
// list that is no grid, it is an error.
func ReadShardings(m *ir.Module) error {
	n := max(m.Attrs.Int("mhlo.num_partitions"), 1)
	mesh := &ir.Mesh{Name: deviceMesh, Axes: []ir.MeshAxis{{Name: deviceAxis, Size: n}}}
	var errs []error
	read := func(v *ir.Value, as *ir.Attrs, o *ir.Origin) {
		text, ok := as.Get(shardingAttr).(ir.Str)
		if !ok || !v.Type.IsTensor() {
			return
		}
		s, err := readSharding(string(text), mesh, v.Type.Rank())
		if err != nil {
			at := ""
			if o != nil && o.Pos.Line > 0 {
				at = o.Pos.String() + ": "
			}
			errs = append(errs, fmt.Errorf("%ssharding of %s: %w", at, v.Name, err))
			return
		}
		v.Sharding = s
		as.Delete(shardingAttr)
	}
	for _, f := range m.Funcs {
		if f.Body == nil {
			continue
		}
		for _, v := range f.Params() {
			read(v, &v.Attrs, nil)
		}
		f.Body.Walk(func(op *ir.Op) {
			if len(op.Results) == 1 {
				read(op.Result(), &op.Attrs, op.Origin)
			}
		})
	}
	m.Meshes = []*ir.Mesh{mesh}
	return errors.Join(errs...)
}

const shardingAttr = "hlo.sharding"

var tilingText = regexp.MustCompile(`^\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))( last_tile_dim_replicate)?\}$`)

// readSharding reads {replicated} and {devices=[2,2]<=[2,2]T(1,0)
// last_tile_dim_replicate}: the devices, numbered as a grid whose dimensions
// have been transposed, tile the dimensions of the value one after the other.
func readSharding(text string, mesh *ir.Mesh, rank int) (*ir.Sharding, error) {
	s := ir.Replicated(mesh.Name, rank)
	if text == "{replicated}" {
		return s, nil
	}
	t := tilingText.FindStringSubmatch(text)
	if t == nil {
		return nil, fmt.Errorf("%s is not read, want {replicated} or {devices=[…]<=[…]}", text)
	}
	tiles, grid, perm := numbers(t[1]), numbers(t[2]), numbers(t[3])
	devices := mesh.Axes[0].Size
	if t[4] != "" {
		if list := numbers(t[4]); !slices.IsSorted(list) || len(list) != devices {
			return nil, fmt.Errorf("%s numbers the devices in another order than a grid's", text)
		}
		grid = []int{devices}
	}
	if perm == nil {
		for i := range grid {
			perm = append(perm, i)
		}
	}
	want := rank
	if t[5] != "" {
		want++
	}
	digits, ok := gridDigits(mesh, grid, perm)
	if !ok || len(tiles) != want || product(tiles) != devices {
		return nil, fmt.Errorf("%s does not tile a value of rank %d over %d devices", text, rank, devices)
	}
	for d, n := range tiles[:rank] {
		var axes []ir.AxisRef
		if axes, digits, ok = takeDigits(mesh, digits, n); !ok {
			return nil, fmt.Errorf("%s: %d tiles of dimension %d are not a part of the grid", text, n, d)
		}
		s.Dims[d].Axes = mesh.JoinAxes(nil, axes)
	}
	return s, nil
}

func numbers(text string) []int {
	var ns []int
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		n, _ := strconv.Atoi(s)
		ns = append(ns, n)
	}
	return ns
}

// gridDigits are the dimensions of a grid of all devices as parts of the axis,
// in the order of perm.
func gridDigits(mesh *ir.Mesh, grid, perm []int) ([]ir.AxisRef, bool) {
	if product(grid) != mesh.Axes[0].Size || len(perm) != len(grid) {
		return nil, false
	}
	digits := make([]ir.AxisRef, len(grid))
	for i, d := range perm {
		if d < 0 || d >= len(grid) || slices.Contains(perm[:i], d) {
			return nil, false
		}
		digits[i] = mesh.SubAxis(deviceAxis, product(grid[:d]), grid[d])
	}
	return digits, true
}

// takeDigits takes n devices from the front of digits.
func takeDigits(mesh *ir.Mesh, digits []ir.AxisRef, n int) (taken, rest []ir.AxisRef, ok bool) {
	for n > 1 {
		if len(digits) == 0 {
			return nil, nil, false
		}
		pre, size := mesh.Span(digits[0])
		switch {
		case n%size == 0:
			if size > 1 {
				taken = append(taken, digits[0])
			}
			digits, n = digits[1:], n/size
		case size%n == 0:
			taken = append(taken, mesh.SubAxis(deviceAxis, pre, n))
			digits = append([]ir.AxisRef{mesh.SubAxis(deviceAxis, pre*n, size/n)}, digits[1:]...)
			n = 1
		default:
			return nil, nil, false
		}
	}
	return taken, digits, true
}
