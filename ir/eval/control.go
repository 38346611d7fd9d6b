package eval

import (
	"errors"
	"fmt"
	"slices"

	"ppc/internal/lapack"
	"ppc/ir"
	"ppc/ir/lapackcall"
)

func identity(e *exec) ([]*tensor, error) { return e.in, nil }
func nothing(e *exec) ([]*tensor, error)  { return nil, nil }

func namedComputation(e *exec) ([]*tensor, error) { return e.region(0, e.in) }

func while(e *exec) ([]*tensor, error) {
	state := e.in
	for {
		running, err := e.region(0, state)
		if err != nil || running[0].i[0] == 0 {
			return state, err
		}
		if state, err = e.region(1, state); err != nil {
			return nil, err
		}
	}
}

func ifOp(e *exec) ([]*tensor, error) {
	if e.in[0].i[0] != 0 {
		return e.region(0, nil)
	}
	return e.region(1, nil)
}

// caseOp: an index that is out of range means the last branch.
func caseOp(e *exec) ([]*tensor, error) {
	i, last := e.in[0].i[0], int64(len(e.op.Regions)-1)
	if i < 0 || i > last {
		i = last
	}
	return e.region(int(i), nil)
}

func call(e *exec) ([]*tensor, error) {
	return e.p.call(e.p.w.m.Func(e.op.Callee()), e.in)
}

func tuple(e *exec) *tensor           { return &tensor{parts: e.in} }
func getTupleElement(e *exec) *tensor { return e.in[0].parts[e.op.Int("index")] }

func customCall(e *exec) ([]*tensor, error) {
	target := e.op.Str("call_target_name")
	if r := lapack.Find(target); r != nil {
		return e.lapack(r)
	}
	if !e.op.Annotates() {
		return nil, fmt.Errorf("the custom call %s is not evaluated", ir.SymbolText(target))
	}
	return identity(e)
}

// lapack calls r for each matrix of the batch.
func (e *exec) lapack(r *lapack.Routine) ([]*tensor, error) {
	option := lapackcall.Option(e.op, lapack.Option)
	if err := lapackcall.Check(e.op, r.Precision, r.Operands, r.Results); err != nil {
		return nil, err
	}
	if err := r.Check(option, lapackcall.ShapesBehind(e.op.Operands, r.Operands), lapackcall.ShapesBehind(e.op.Results, r.Results)); err != nil {
		return nil, err
	}
	rank := len(e.in[0].shape) - r.Operands[0].Rank
	out := make([]*tensor, len(e.op.Results))
	for i := range out {
		out[i] = e.result(i)
	}
	for i := range ir.Product(e.in[0].shape[:rank]) {
		var in, results []lapack.Array
		for _, x := range e.in {
			n := ir.Product(x.shape[rank:])
			a := lapack.Array{Shape: x.shape[rank:]}
			if x.c != nil {
				a.Complex = slices.Clone(x.c[i*n : (i+1)*n])
			} else {
				a.Data = slices.Clone(x.f[i*n : (i+1)*n])
			}
			in = append(in, a)
		}
		for _, x := range out {
			a, n := lapack.Array{Shape: x.shape[rank:]}, ir.Product(x.shape[rank:])
			if x.c != nil {
				a.Complex = x.c[i*n : (i+1)*n]
			} else {
				a.Data = make([]float64, n)
			}
			results = append(results, a)
		}
		r.Run(option, in, results)
		for k, x := range out {
			for j, v := range results[k].Data {
				at := i*len(results[k].Data) + j
				if x.f != nil {
					x.f[at] = v
				} else {
					x.i[at] = int64(v)
				}
			}
		}
	}
	for _, x := range out {
		x.round()
	}
	return out, nil
}

func unknown(e *exec) ([]*tensor, error) {
	if f := references[e.op.Spelling]; f != nil {
		return f(e)
	}
	if f := hloOp(e.op.Spelling); f != nil {
		return f(e)
	}
	return nil, errors.New("an op that the evaluator does not know")
}
