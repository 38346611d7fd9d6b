// Package xla reads the conventions of XLA's front ends that are not ops:
// attributes of modules, functions, values and ops, and custom calls with a meaning
// for the compiler.
//
//   - Shardings of GSPMD (mhlo.sharding, the custom calls Sharding,
//     SPMDFullToShardShape and SPMDShardToFullShape) become Shardy's, on a mesh
//     that is derived from them.
//   - Custom calls that call functions of the program, such as that of
//     lax.approx_max_k, become other ops.
//   - Callbacks to the host that return nothing, such as those of
//     jax.debug.print, are left out with a warning; see also [Unattended].
//   - An attribute that changes what the program means and is not read is an
//     error.
//
// The package takes modules that were read elsewhere, and reads no file itself.
package xla

import (
	"fmt"
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
)

// A Warning is one row of [Warnings].
type Warning struct {
	Name    string // as in --skip; lower case, no spaces
	Doc     string // one line
	Explain string // a paragraph: what is warned of, what it costs, when it is right
}

const hostCallback = "host-callback"

// Warnings is everything that is warned of when a program is read.
var Warnings = []Warning{
	{hostCallback, "a call to the host that returns nothing is left out",
		`jax.debug.print, jax.debug.callback and io_callback call a function of the Python process. There is none when the program runs here, so a
call whose results nobody needs is left out: the numbers are the same, and nothing is printed. A call whose results are used is an error. With
--strict every call is. An infeed, an outfeed or a transfer of HLO to the host is one where a program runs; what lower prints still has it,
since who runs that may attend to it.`},
}

// Options are how much is refused.
type Options struct {
	Strict bool // warnings are errors
}

// Import converts m, a verified module, to one that consists of ops and shardings
// of the IR alone, and returns its warnings. A module that has a mesh or a sharding
// is the global program, and has a mesh afterwards if there are several devices,
// even if only removed attributes named it. An attribute or call that changes the
// meaning of m and cannot be read is an error, a [diag.List].
func Import(m *ir.Module, o Options) (warnings diag.List, err error) {
	im := &importer{m: m, Options: o, has: surveyOf(m)}
	global := len(m.Meshes) > 0 || im.saysShardings()
	im.each(im.attributes)
	im.aliases()
	im.targets()
	for _, f := range m.Funcs {
		if f.Body != nil {
			if im.has.calls {
				im.called(f, f.Body, f.NewSubst())
			}
			if im.has.edges {
				im.edges(f)
			}
			f.Body.Walk(func(op *ir.Op) {
				if r := op.CombinesTensors(); r != nil {
					im.errorf(op.Origin, "%s: %s", op.Name(), r.Msg)
				}
			})
		}
	}
	im.leaveOut(isHostCall, "calls the host, which is not there when the program runs")
	if len(im.errs) == 0 {
		im.shardings()
	}
	dropMeshes(m)
	if n := m.Attrs.Int("mhlo.num_partitions"); global && len(m.Meshes) == 0 && n > 1 {
		m.Meshes = []*ir.Mesh{{Name: m.Unused("mesh"), Axes: []ir.MeshAxis{{Name: "devices", Size: n}}}}
	}
	im.warnings.Sort()
	im.errs.Sort()
	return im.warnings, im.errs.Err()
}

type importer struct {
	m   *ir.Module
	has survey // of the ops of m as they were given
	Options
	warnings diag.List
	errs     diag.List

	texts map[string]*text
	mesh  *ir.Mesh // of the shardings of GSPMD
}

func (im *importer) errorf(o *ir.Origin, format string, args ...any) {
	im.errs = append(im.errs, diagnostic(o, "", format, args...))
}

func (im *importer) warn(o *ir.Origin, name, format string, args ...any) {
	im.warnings = append(im.warnings, diagnostic(o, name, format, args...))
}

func diagnostic(o *ir.Origin, name, format string, args ...any) *diag.Diagnostic {
	d := &diag.Diagnostic{Warning: name, Msg: fmt.Sprintf(format, args...)}
	if at := place(o); at.Line > 0 {
		d.File, d.Line, d.Col = at.File, at.Line, at.Col
	}
	return d
}

// place is where o stands in the text that was read; where that is not known,
// in its source.
func place(o *ir.Origin) ir.Pos {
	switch {
	case o == nil:
		return ir.Pos{}
	case o.Text != nil:
		return *o.Text
	}
	return o.Pos
}

// each visits all attributes of the module that are of a dialect, and may visit others:
// what has them, where it stands, and the attributes.
func (im *importer) each(visit func(what string, o *ir.Origin, as ir.Attrs)) {
	visit("the module", nil, im.m.Attrs)
	for _, f := range im.m.Funcs {
		name := ir.SymbolText(f.Name)
		visit(name, f.Origin, f.Attrs)
		for i, v := range f.Params() {
			visit(fmt.Sprintf("parameter %d of %s", i, name), f.Origin, v.Attrs)
		}
		for i, r := range f.Results {
			visit(fmt.Sprintf("result %d of %s", i, name), f.Origin, r.Attrs)
		}
		if f.Body != nil && im.has.attrs {
			f.Body.Walk(func(op *ir.Op) { visit(op.Name(), op.Origin, op.Attrs) })
		}
	}
}

// attributes reports the attributes that change what the program means and are
// not read.
func (im *importer) attributes(what string, o *ir.Origin, as ir.Attrs) {
	for _, a := range as {
		row := rowOf(a.Name)
		if row.meaning == refused || row.meaning == unless && !isZero(a.Attr) {
			im.errorf(o, "%s has the attribute %s: %s", what, a.Name, row.why)
		}
		if n, ok := a.Attr.(ir.Int); (a.Name == "mhlo.num_partitions" || a.Name == "mhlo.num_replicas") && (!ok || n.Value < 1 || n.Value > ir.MaxDevices) {
			im.errorf(o, "%s has the attribute %s = %s, want a number of devices, 1 to %d", what, a.Name, a.Attr, ir.MaxDevices)
		}
		if text, ok := a.Attr.(ir.Str); ok && a.Name == "hlo.frontend_attributes" && strings.Contains(string(text), "xla.sdy.sharding") && !as.Has("hlo.sharding") {
			im.errorf(o, "%s has the frontend attribute xla.sdy.sharding: %s", what, frontendRow("xla.sdy.sharding").why)
		}
		if a.Name != "mhlo.frontend_attributes" {
			continue
		}
		d, _ := a.Attr.(ir.Dict)
		for _, e := range d {
			if row := frontendRow(e.Name); row.meaning == refused {
				im.errorf(o, "%s has the frontend attribute %s: %s", what, e.Name, row.why)
			}
		}
	}
}

// aliases reports the parameters of main whose memory goes to no result, or to one
// that has that of another.
func (im *importer) aliases() {
	main := im.m.Main()
	if main == nil {
		return
	}
	from := make(map[int]int)
	for i, v := range main.Params() {
		a := v.Attrs.Get(aliasAttr)
		if a == nil {
			continue
		}
		n, ok := a.(ir.Int)
		if !ok || n.Value < 0 || n.Value >= len(main.Results) {
			im.errorf(main.Origin, "parameter %d of %s has the attribute %s = %s, want the number of a result; it has %s", i, ir.SymbolText(main.Name), aliasAttr, a, counted(len(main.Results), "result"))
			continue
		}
		if k, twice := from[n.Value]; twice {
			im.errorf(main.Origin, "parameter %d of %s has the attribute %s = %s, and so has parameter %d: a result takes the memory of one", i, ir.SymbolText(main.Name), aliasAttr, a, k)
		}
		from[n.Value] = i
	}
}

// targets reports the custom calls in which XLA stores what Shardy says.
func (im *importer) targets() {
	for _, f := range im.m.Funcs {
		if f.Body == nil || !im.has.calls {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			if t := strings.TrimPrefix(op.Str("call_target_name"), "local_"); op.Kind == ir.CustomCall && strings.HasPrefix(t, "xla.sdy.") {
				im.errorf(op.Origin, "custom_call @%s is an op of Shardy in the form in which XLA stores it; export the program as StableHLO with ops of Shardy", t)
			}
		})
	}
}

// dropMeshes removes the meshes without axes that nothing names any more.
func dropMeshes(m *ir.Module) {
	if !slices.ContainsFunc(m.Meshes, func(mesh *ir.Mesh) bool { return len(mesh.Axes) == 0 }) {
		return
	}
	used := make(map[string]bool)
	see := func(s *ir.Sharding) {
		if s != nil {
			used[s.Mesh] = true
		}
	}
	var attr func(a ir.Attr)
	attrs := func(as ir.Attrs) {
		for _, a := range as {
			attr(a.Attr)
		}
	}
	attr = func(a ir.Attr) {
		switch a := a.(type) {
		case *ir.Sharding:
			see(a)
		case ir.PerValue:
			for _, s := range a {
				see(s)
			}
		case ir.MeshAxes:
			used[a.Mesh] = true
		case ir.Dict:
			attrs(ir.Attrs(a))
		case ir.Array:
			for _, e := range a {
				attr(e)
			}
		}
	}
	attrs(m.Attrs)
	for _, f := range m.Funcs {
		attrs(f.Attrs)
		for _, r := range f.Results {
			see(r.Sharding)
			attrs(r.Attrs)
		}
		for _, v := range f.Params() {
			see(v.Sharding)
			attrs(v.Attrs)
		}
		if f.Body == nil {
			continue
		}
		f.Body.Walk(func(op *ir.Op) {
			for _, v := range op.Results {
				see(v.Sharding)
			}
			attrs(op.Attrs)
		})
	}
	m.Meshes = slices.DeleteFunc(m.Meshes, func(mesh *ir.Mesh) bool { return len(mesh.Axes) == 0 && !used[mesh.Name] })
}
