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
