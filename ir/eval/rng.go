package eval

import (
	"fmt"

	"ppc/internal/rng"
)

// rngBits gives the bits that XLA gives.
func rngBits(e *exec) ([]*tensor, error) {
	next, out := e.result(0), e.result(1)
	if out.i == nil {
		return nil, fmt.Errorf("random numbers of type %s are not evaluated: want integers", out.elem)
	}
	state := make([]uint64, e.in[0].len())
	for k, v := range e.in[0].i {
		state[k] = uint64(v)
	}
	bits, after, err := rng.Generate(e.op.Word("rng_algorithm"), state, out.shape, out.elem.Bits())
	if err != nil {
		return nil, err
	}
	for k, v := range bits {
		out.i[k] = int64(v)
	}
	for k, v := range after {
		next.i[k] = int64(v)
	}
	out.round()
	return []*tensor{next, out}, nil
}
