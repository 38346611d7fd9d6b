package ir

// Signature is the parameter and result types of f. A declaration has it in an
// attribute, or leaves it unknown.
func (f *Func) Signature() (in, out []*Type, known bool) {
	if f.Body == nil {
		a, _ := f.Attrs.Get("function_type").(TypeAttr)
		if t := a.Type; t != nil && t.Kind == FuncType {
			return t.Elems[:t.NumIn], t.Elems[t.NumIn:], true
		}
		return nil, nil, false
	}
	for _, r := range f.Results {
		out = append(out, r.Type)
	}
	return TypesOf(f.Params()), out, true
}

// callees are the functions that op runs.
func callees(op *Op) []string {
	var names []string
	for _, a := range []Attr{Sym(op.Callee()), op.Attrs.Get("layer"), ConfigOf(op).Get("outside")} {
		if s, ok := a.(Sym); ok && s != "" {
			names = append(names, string(s))
		}
	}
	return names
}

// Callee is the function that a call, or a composite, calls; "" for other ops.
func (op *Op) Callee() string {
	switch op.Kind {
	case Call:
		return op.Sym("callee")
	case CompositeCall:
		return op.Sym("decomposition")
	}
	return ""
}

// ConfigOf is the attribute config of op, a pp.pipeline or pp.stack: the settings of
// its pipeline block. It is empty if there is none.
func ConfigOf(op *Op) Attrs {
	d, _ := op.Attrs.Get("config").(Dict)
	return Attrs(d)
}

// verifyCalls checks that no function calls itself, directly or indirectly:
// programs are evaluated by inlining.
func verifyCalls(m *Module, errs *Errors) {
	c := callGraph{m: m, errs: errs, state: make(map[*Func]int)}
	for _, f := range m.Funcs {
		c.visit(f)
	}
	errs.fn = nil
}

type callGraph struct {
	m     *Module
	errs  *Errors
	state map[*Func]int // 0 not seen, 1 on the way, 2 done
}

func (c *callGraph) visit(f *Func) {
	if f == nil || f.Body == nil || c.state[f] != 0 {
		return
	}
	c.state[f] = 1
	var ops []*Op
	c.errs.calls(f, func(op *Op) { ops = append(ops, op) })
	for _, op := range ops {
		for _, name := range callees(op) {
			g := c.m.Func(name)
			if g != nil && c.state[g] == 1 {
				c.errs.fn = f
				c.errs.add(op, NewRule("structure-10", "%s calls itself, by way of %s", SymbolText(g.Name), SymbolText(f.Name)))
				continue
			}
			c.visit(g)
		}
	}
	c.state[f] = 2
}

// calls visits the ops of f, unless an error has been found in it: its blocks may
// then be nil, or contain themselves.
func (e *Errors) calls(f *Func, visit func(*Op)) {
	for _, err := range e.List {
		if err.Func == f {
			return
		}
	}
	f.Body.Walk(visit)
}
