package eval

import (
	"errors"
	"fmt"

	"ppc/ir"
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

// transparent are the custom calls that only annotate their operand.
var transparent = map[string]bool{"Sharding": true, "annotate_device_placement": true}

func customCall(e *exec) ([]*tensor, error) {
	if target := e.op.Str("call_target_name"); !transparent[target] {
		return nil, fmt.Errorf("the custom call %s is not evaluated", ir.SymbolText(target))
	}
	return identity(e)
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
