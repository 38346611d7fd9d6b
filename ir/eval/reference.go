package eval

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"ppc/internal/elementary"
	"ppc/ir"
)

// references are the ops without a Kind.
var references map[string]func(*exec) ([]*tensor, error)

func init() { // the functions evaluate regions, which may have any op
	token := func(*exec) ([]*tensor, error) { return []*tensor{new(tensor)}, nil }
	references = map[string]func(*exec) ([]*tensor, error){
		"stablehlo.after_all":    token,
		"stablehlo.create_token": token,
		"stablehlo.outfeed":      token,
		"stablehlo.infeed":       infeed,
		"stablehlo.send":         send,
		"stablehlo.recv":         receive,
		"stablehlo.async_start":  asyncStart,
		"stablehlo.async_done":   func(e *exec) ([]*tensor, error) { return e.in[0].parts, nil },

		"stablehlo.collective_reduce":    collectiveReduce,
		"stablehlo.map":                  one(mapOp),
		"stablehlo.batch_norm_training":  batchNormTraining,
		"stablehlo.batch_norm_inference": one(batchNormInference),
		"stablehlo.batch_norm_grad":      batchNormGrad,
		"stablehlo.uniform_quantize":     one(uniformQuantize),
		"stablehlo.uniform_dequantize":   one(uniformDequantize),

		"stablehlo.get_dimension_size":       one(getDimensionSize),
		"stablehlo.set_dimension_size":       one(setDimensionSize),
		"stablehlo.dynamic_broadcast_in_dim": one(dynamicBroadcast),
		"stablehlo.dynamic_conv":             one(dynamicConv),
		"stablehlo.dynamic_gather":           one(dynamicGather),
		"stablehlo.dynamic_iota":             one(dynamicIota),
		"stablehlo.dynamic_pad":              one(dynamicPad),
		"stablehlo.dynamic_reshape":          one(dynamicReshape),
		"stablehlo.real_dynamic_slice":       one(realDynamicSlice),

		"stablehlo.broadcast": one(oldBroadcast),
		"stablehlo.dot":       one(oldDot),

		"chlo.bessel_i1e": one(eachOf(unaryOp{f: elementary.BesselI1e}.each)),
		"chlo.mulhi":      one(eachOf(binaryOp{i: mulhi}.each)),
		"chlo.polygamma":  one(eachOf(binaryOp{f: polygamma}.each)),
		"chlo.scan":       scanOp,
		"chlo.zeta":       one(eachOf(binaryOp{f: elementary.Zeta}.each)),
	}
}

// eachOf evaluates an elementwise op.
func eachOf(f each) func(*exec) (*tensor, error) {
	return func(e *exec) (*tensor, error) {
		t := typeOfValue(e.in[0], e.op.Results[0].Type)
		out := newTensor(e.p.elem(t.Elem), t.Shape)
		return out, f(e.op, out, e.in)
	}
}

// mulhi is the upper half of the product of two integers of type t.
func mulhi(t ir.DType, x, y int64) int64 {
	n := t.Bits()
	switch {
	case n < 64 && t.Class() == ir.Unsigned:
		return int64(uint64(x) * uint64(y) >> n)
	case n < 64 && n <= 32:
		return x * y >> n
	}
	hi, _ := bits.Mul64(uint64(x), uint64(y))
	if t.Class() == ir.Signed {
		hi -= uint64(x>>63)&uint64(y) + uint64(y>>63)&uint64(x)
	}
	return int64(hi)
}

func oldBroadcast(e *exec) (*tensor, error) {
	sizes := e.op.Ints("broadcast_sizes")
	dims := make(ir.Ints, len(e.in[0].shape))
	for d := range dims {
		dims[d] = len(sizes) + d
	}
	return e.do(ir.BroadcastInDim, ir.Tensor(e.in[0].elem, slices.Concat(sizes, e.in[0].shape)...), ir.AttrsOf(ir.NamedAttr{Name: "broadcast_dimensions", Attr: dims}), e.in[0])
}

func oldDot(e *exec) (*tensor, error) {
	d := ir.Dot{LhsContract: []int{len(e.in[0].shape) - 1}, RhsContract: []int{0}}
	t := e.op.Results[0].Type
	return e.do(ir.DotGeneral, ir.Tensor(e.p.elem(t.Elem), t.Shape...), ir.AttrsOf(ir.NamedAttr{Name: "dot_dimension_numbers", Attr: d}), e.in...)
}

// mapOp runs the region on the elements at each place.
func mapOp(e *exec) (*tensor, error) {
	t := typeOfValue(e.in[0], e.op.Results[0].Type)
	out := newTensor(e.p.elem(t.Elem), e.in[0].shape)
	b, err := e.body(out.len())
	if err != nil {
		return nil, err
	}
	for lo := 0; lo < out.len(); lo += b.width {
		hi := min(lo+b.width, out.len())
		for i, x := range e.in {
			b.loadRange(i, x, lo, hi)
		}
		if err := b.into([]*tensor{out}, lo, hi); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scanOp runs the region on the slices along a dimension, one after the other,
// and on the carries that it returned before.
func scanOp(e *exec) ([]*tensor, error) {
	dim := e.op.Int("dimension")
	inputs, carries, _ := e.op.Segments()
	outputs := len(e.op.Results) - carries
	n := e.in[0].shape[dim]
	state := e.in[inputs:]
	parts := make([][]*tensor, outputs)
	for k := range n {
		at := k
		if e.op.Bool("is_reverse") {
			at = n - 1 - k
		}
		var args []*tensor
		for _, x := range e.in[:inputs] {
			args = append(args, x.part(dim, at, 1).reshaped(slices.Delete(slices.Clone(x.shape), dim, dim+1)))
		}
		ys, err := e.region(0, append(args, state...))
		if err != nil {
			return nil, err
		}
		for i, y := range ys[:outputs] {
			parts[i] = append(parts[i], y.reshaped(slices.Insert(slices.Clone(y.shape), dim, 1)))
		}
		state = ys[outputs:]
	}
	var out []*tensor
	for i, p := range parts {
		if e.op.Bool("is_reverse") {
			slices.Reverse(p)
		}
		if len(p) == 0 && isOpen(e.op.Results[i]) {
			return nil, errors.New("nothing is scanned, and the sizes of the result are not known")
		}
		if len(p) == 0 {
			out = append(out, e.result(i))
			continue
		}
		out = append(out, concat(dim, p))
	}
	return append(out, state...), nil
}

// features are the elements of x along dimension dim, each with a number of
// elements.
type features struct {
	step, size, count int // count: elements of one feature
}

func featuresOf(x *tensor, dim int) features {
	f := features{step: ir.Strides(x.shape)[dim], size: x.shape[dim]}
	if f.size > 0 {
		f.count = x.len() / f.size
	}
	return f
}

// of is the feature of element k.
func (f features) of(k int) int { return k / f.step % f.size }

// mean is the mean of each feature of the values that of gives for each element.
func (f features) mean(n int, of func(k int) float64) []float64 {
	sums := make([]float64, f.size)
	for k := range n {
		sums[f.of(k)] += of(k)
	}
	for i := range sums {
		sums[i] /= float64(f.count)
	}
	return sums
}

func (e *exec) epsilon() float64 {
	a, _ := e.op.Attrs.Get("epsilon").(ir.Float)
	return a.Value
}

func batchNormInference(e *exec) (*tensor, error) {
	x, scale, offset, mean, variance := e.in[0], e.in[1].f, e.in[2].f, e.in[3].f, e.in[4].f
	out, f := x.like(x.shape), featuresOf(x, e.op.Int("feature_index"))
	for k, v := range x.f {
		i := f.of(k)
		out.f[k] = scale[i]*(v-mean[i])/math.Sqrt(variance[i]+e.epsilon()) + offset[i]
	}
	out.round()
	return out, nil
}

// list returns values of each feature as a value like x.
func list(x *tensor, values []float64) *tensor {
	out := x.like([]int{len(values)})
	copy(out.f, values)
	out.round()
	return out
}

func batchNormTraining(e *exec) ([]*tensor, error) {
	x, f := e.in[0], featuresOf(e.in[0], e.op.Int("feature_index"))
	mean := f.mean(x.len(), func(k int) float64 { return x.f[k] })
	variance := f.mean(x.len(), func(k int) float64 { return (x.f[k] - mean[f.of(k)]) * (x.f[k] - mean[f.of(k)]) })
	out := x.like(x.shape)
	for k, v := range x.f {
		i := f.of(k)
		out.f[k] = e.in[1].f[i]*(v-mean[i])/math.Sqrt(variance[i]+e.epsilon()) + e.in[2].f[i]
	}
	out.round()
	return []*tensor{out, list(x, mean), list(x, variance)}, nil
}

func batchNormGrad(e *exec) ([]*tensor, error) {
	x, scale, mean, variance, grad := e.in[0], e.in[1].f, e.in[2].f, e.in[3].f, e.in[4]
	f, n := featuresOf(x, e.op.Int("feature_index")), x.len()
	centred := func(k int) float64 { return x.f[k] - mean[f.of(k)] }
	ofGrad := f.mean(n, func(k int) float64 { return grad.f[k] })
	ofBoth := f.mean(n, func(k int) float64 { return grad.f[k] * centred(k) })
	out := x.like(x.shape)
	for k := range n {
		i := f.of(k)
		wide := variance[i] + e.epsilon()
		out.f[k] = scale[i] / math.Sqrt(wide) * (grad.f[k] - ofGrad[i] - ofBoth[i]*centred(k)/wide)
	}
	out.round()
	count := float64(f.count)
	ofScale, ofOffset := make([]float64, f.size), make([]float64, f.size)
	for i := range ofScale {
		ofScale[i] = ofBoth[i] * count / math.Sqrt(variance[i]+e.epsilon())
		ofOffset[i] = ofGrad[i] * count
	}
	return []*tensor{out, list(x, ofScale), list(x, ofOffset)}, nil
}

// collectiveReduce: zeros on all devices but the root.
func collectiveReduce(e *exec) ([]*tensor, error) {
	group, err := e.group()
	if err != nil {
		return nil, err
	}
	at := slices.Index(group, e.p.rank)
	if at < 0 {
		return e.zeros(), nil
	}
	all, err := e.exchange(group)
	if err != nil {
		return nil, err
	}
	out := e.zeros()
	for k := range out {
		root := 0
		if e.op.Bool("has_dynamic_root") {
			root = int(e.in[len(e.in)-1].i[k])
		}
		if root != at {
			continue
		}
		if out[k], err = e.fold(all, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// asyncStart does the whole of what it starts.
func asyncStart(e *exec) ([]*tensor, error) {
	out, err := e.region(0, e.in)
	return []*tensor{{parts: out}}, err
}

// infeed takes the next values that the host hands in.
func infeed(e *exec) ([]*tensor, error) {
	w := e.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.infeed) == 0 {
		return nil, errors.New("the host hands nothing in")
	}
	values := w.infeed[0]
	w.infeed = w.infeed[1:]
	return append(slices.Clone(values), new(tensor)), nil
}

// edge is the route of a transfer in a direction, sends or receives, and whether
// this device takes part: the n-th send on it is for the n-th receive. Pairs of devices have routes of
// their own; without them the route is the channel.
func (e *exec) edge(direction int) (route string, takesPart bool, err error) {
	channel, _ := e.op.Attrs.Get("channel_handle").(ir.Channel)
	l := e.op.Literal("source_target_pairs")
	if l == nil || l.Type.NumElements() == 0 {
		return fmt.Sprint("channel ", channel.Handle), true, nil
	}
	from, to, err := e.neighbours()
	if direction == sends {
		return fmt.Sprint("channel ", channel.Handle, e.p.rank, to), to >= 0, err
	}
	return fmt.Sprint("channel ", channel.Handle, from, e.p.rank), from >= 0, err
}

// The epochs of a route count its sends and its receives apart.
const (
	sends    = -1
	receives = -2
)

// send does not wait.
func send(e *exec) ([]*tensor, error) {
	route, ok, err := e.edge(sends)
	if err == nil && ok {
		w := e.p.w
		w.put(address{route, sends, w.epoch(sends, route)}, 1, e.in[:len(e.in)-1])
	}
	return []*tensor{new(tensor)}, err
}

// receive waits; a device that nobody sends to has zeros.
func receive(e *exec) ([]*tensor, error) {
	route, ok, err := e.edge(receives)
	if err != nil {
		return nil, err
	}
	n := len(e.op.Results) - 1
	if !ok {
		var out []*tensor
		for i := range n {
			if isOpen(e.op.Results[i]) {
				return nil, errors.New("nothing is received, and the sizes of the result are not known")
			}
			out = append(out, e.result(i))
		}
		return append(out, new(tensor)), nil
	}
	w := e.p.w
	got, err := w.get(e.p.rank, e.op, address{route, sends, w.epoch(receives, route)})
	if err == nil && len(got) != n {
		err = fmt.Errorf("%d values are sent, %d received", len(got), n)
	}
	return append(slices.Clone(got), new(tensor)), err
}
