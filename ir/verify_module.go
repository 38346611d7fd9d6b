package ir

// The functions in this file check what an op says of the rest of the module:
// that the functions and meshes it names exist and fit. They are the column
// inModule of the table, and must not read it.

// callFits: C1 the function exists; C2 it takes and returns as many values; C3
// of the same types.
func callFits(m *Module, op *Op) *Rule {
	f := m.Func(op.Sym("callee"))
	if f == nil {
		return broken(1, "there is no function %s", SymbolText(op.Sym("callee")))
	}
	if f.Body == nil {
		return nil
	}
	if len(f.Params()) != len(op.Operands) || len(f.Results) != len(op.Results) {
		return broken(2, "%s takes %d values and returns %d, not %d and %d", SymbolText(f.Name), len(f.Params()), len(f.Results), len(op.Operands), len(op.Results))
	}
	for i, p := range f.Params() {
		if !compatible(p.Type, op.Operands[i].Type) {
			return broken(3, "operand %d is %s, %s takes %s", i, op.Operands[i].Type, SymbolText(f.Name), p.Type)
		}
	}
	for i, r := range f.Results {
		if !compatible(r.Type, op.Results[i].Type) {
			return broken(3, "result %d is %s, %s returns %s", i, op.Results[i].Type, SymbolText(f.Name), r.Type)
		}
	}
	return nil
}

func verifyCalls(m *Module, errs *Errors) {}
