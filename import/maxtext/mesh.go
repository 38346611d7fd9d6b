package maxtext

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ppc/internal/spell"
)

// A mesh is the devices as a grid, without the axes of one device.
type mesh struct {
	axes    []meshAxis
	devices int
	slices  int
	stages  int
	preset  string // of the hardware, "" where it is not known
}

type meshAxis struct {
	name     string
	dcn, ici int
}

func (a meshAxis) size() int { return a.dcn * a.ici }

// parallelism is the key that says how long a mesh axis is, over the network
// between slices or inside of one.
func parallelism(over, axis string) string {
	if axis == "stage" {
		axis = "pipeline"
	}
	return over + "_" + axis + "_parallelism"
}

// mesh reads mesh_axes and the parallelism of each: what is -1 takes the devices
// that the others leave.
func (c *config) mesh() mesh {
	names := c.texts("mesh_axes")
	for _, name := range names {
		if keyOf(parallelism("ici", name)) == nil {
			c.fail("mesh_axes", "", "mesh_axes: MaxText has no parallelism of axis %s", name)
			return mesh{devices: 1, slices: 1, stages: 1}
		}
	}
	c.unmeshed(names)
	perSlice, preset := c.topology()
	m := mesh{slices: c.sliceCount(names), preset: preset}
	m.devices = perSlice * m.slices
	for _, n := range []int{c.whole("internal_compile_num_devices"), c.opts.Devices} {
		if n > 0 {
			m.devices = n
		}
	}
	dcn := c.fill("dcn", names, m.slices, "slice", "slices")
	if m.devices > 0 && m.devices%m.slices != 0 {
		c.fail("compile_topology_num_slices", "", "%s do not divide into %s", counted(m.devices, "device"), counted(m.slices, "slice"))
		m.devices = 0
	}
	ici := c.fill("ici", names, m.devices/m.slices, "device of a slice", "devices of a slice")
	m.stages, m.devices = 1, 1
	for i, name := range names {
		a := meshAxis{name, dcn[i], ici[i]}
		m.devices *= a.size()
		if name == "stage" {
			m.stages = a.size()
		}
		if a.size() > 1 {
			m.axes = append(m.axes, a)
		}
	}
	if m.stages > 1 { // MaxText puts stage before data
		k := slices.IndexFunc(m.axes, func(a meshAxis) bool { return a.name == "stage" })
		stage := m.axes[k]
		rest := slices.Delete(slices.Clone(m.axes), k, k+1)
		at := slices.IndexFunc(rest, func(a meshAxis) bool { return a.name == "data" })
		if at < 0 {
			at = 0
			if len(rest) > 0 && rest[0].name == "diloco" {
				at = 1
			}
		}
		m.axes = slices.Insert(rest, at, stage)
	}
	return m
}

// unmeshed finds parallelism along axes that the mesh does not have.
func (c *config) unmeshed(names []string) {
	for _, k := range Keys() {
		over, axis, ok := strings.Cut(strings.TrimSuffix(k.Name, "_parallelism"), "_")
		if !ok || over != "ici" && over != "dcn" || k.Answer != Mapped || k.Kind != "whole" || !strings.HasSuffix(k.Name, "_parallelism") {
			continue
		}
		if axis == "pipeline" {
			axis = "stage"
		}
		if n := c.whole(k.Name); n != 1 && n != -1 && !slices.Contains(names, axis) {
			c.fail(k.Name, "mesh_axes="+show(c.get("mesh_axes")), "%s: the mesh has no axis %s", c.is(k.Name), axis)
		}
	}
}

// sliceCount is how many slices there are: as given, or as the axes over the
// network are long.
func (c *config) sliceCount(names []string) int {
	for _, key := range []string{"compile_topology_num_slices", "num_slices"} {
		if n := c.whole(key); n > 0 {
			return n
		}
	}
	n := 1
	for _, name := range names {
		if k := c.whole(parallelism("dcn", name)); k > 0 {
			n *= k
		}
	}
	return n
}

// fill is the sizes of the axes, of which the one that is -1 gets the rest of n.
func (c *config) fill(over string, names []string, n int, one, many string) []int {
	out := make([]int, len(names))
	product, open := 1, -1
	for i, name := range names {
		key := parallelism(over, name)
		out[i] = c.whole(key)
		switch {
		case out[i] == -1 && over == "dcn" && n == 1: // of one slice MaxText does not read them
			out[i] = 1
		case out[i] == -1 && open >= 0:
			c.fail(key, "", "%s and %s are both -1", parallelism(over, names[open]), key)
			out[i] = 1
		case out[i] == -1:
			open = i
		case out[i] < 1:
			c.fail(key, "", "%s: want a whole number from 1, or -1", c.is(key))
			out[i] = 1
		default:
			product *= out[i]
		}
		if product > 1<<30 {
			c.fail(key, "", "the mesh has more than %d devices", 1<<30)
			return slices.Repeat([]int{1}, len(names))
		}
	}
	switch {
	case open >= 0 && n == 0:
		key := parallelism(over, names[open])
		if product == 1 && c.values[key].file == "" {
			out[open] = 1 // a mesh of one device, of which nobody has said anything
			return out
		}
		c.fail(key, "give --devices 8, compile_topology=v5p-16, or "+key+"=1", "%s: the number of devices is not known", c.is(key))
		out[open] = 1
	case open >= 0 && n%product != 0:
		do, what := "do", many
		if n == 1 {
			do, what = "does", one
		}
		c.fail(parallelism(over, names[open]), "", "%d %s %s not divide by the other axes over %s (%d)", n, what, do, over, product)
		out[open] = 1
	case open >= 0:
		out[open] = n / product
	case n != 0 && n != product:
		there := fmt.Sprintf("there are %d %s", n, many)
		if n == 1 {
			there = "there is 1 " + one
		}
		c.list = append(c.list, place{file: c.name()}.at(fmt.Sprintf("the axes over %s make %d, %s", over, product, there), "make one of "+over+"_…_parallelism -1"))
	}
	return out
}

// text is the mesh as a block.
func (m mesh) text() string {
	if len(m.axes) == 0 {
		return ""
	}
	parts := make([]string, len(m.axes))
	for i, a := range m.axes {
		switch {
		case a.dcn == 1:
			parts[i] = fmt.Sprintf("%s = %d", a.name, a.ici)
		case a.ici == 1:
			parts[i] = fmt.Sprintf("%s = dcn(%d)", a.name, a.dcn)
		default:
			parts[i] = fmt.Sprintf("%s = dcn(%d) * ici(%d)", a.name, a.dcn, a.ici)
		}
	}
	return "mesh { " + strings.Join(parts, ", ") + " }\n"
}

// customMesh reads the mesh and the rules that custom_mesh_and_rule names.
func (c *config) customMesh() {
	name := c.text("custom_mesh_and_rule")
	if name == "" {
		return
	}
	entries, found := []entry(nil), false
	if len(c.opts.Files) > 0 {
		path := filepath.Join(filepath.Dir(c.opts.Files[0]), "custom_mesh_and_rule", strings.TrimSuffix(name, ".yml")+".yml")
		if text, err := c.opts.ReadFile(path); err == nil {
			entries, found = c.read(path, string(text)), true
		}
	}
	if !found {
		entries, found = builtIn(rulesYML, strings.TrimSuffix(name, ".yml"))
	}
	if !found || name == "base" {
		hint := ""
		if near := spell.Nearest(name, []string{"cp-as-ep", "ep-as-cp", "ep-as-dp", "pipeline-large-moe", "pure-fsdp", "shard-exp-on-fsdp"}); near != "" {
			hint = "did you mean " + near + "?"
		}
		c.fail("custom_mesh_and_rule", hint, "%s: there is no such file", c.is("custom_mesh_and_rule"))
		return
	}
	c.rules = nil
	for _, e := range entries {
		switch e.key {
		case "mesh_axes":
			if !c.args["mesh_axes"] {
				c.apply([]entry{e}, true)
			}
		case "logical_axis_rules":
			c.mergeRules(c.axisRules(e), true)
		}
	}
}
