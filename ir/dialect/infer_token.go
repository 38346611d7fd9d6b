package dialect

import (
	"fmt"

	"ppc/ir"
)

// Constraints and result types of ops that take part in an order, or meet the
// host or another device.

func isToken(t *ir.Type) bool { return t.Kind == ir.TokenType }

func inferAfterAll(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	for i, v := range op.Operands {
		if !isToken(v.Type) {
			return nil, ir.Broken(0, "operand %d is %s, want a token", i, v.Type)
		}
	}
	return []*ir.Type{ir.Token()}, nil
}

// asyncOps are the ops that may be started.
var asyncOps = map[ir.Kind]bool{ir.AllReduce: true, ir.AllGather: true, ir.AllToAll: true, ir.CollectivePermute: true, ir.ReduceScatter: true,
	ir.CollectiveBroadcast: true, ir.Slice: true, ir.DynamicSlice: true, ir.DynamicUpdateSlice: true}

func inferAsyncStart(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	b := op.Regions[0]
	if len(b.Ops) != 2 {
		return nil, ir.Broken(1, "the region has %s, want one and a return", ir.Counted(len(b.Ops), "op"))
	}
	do, ret := b.Ops[0], b.Ops[1]
	if !asyncOps[do.Kind] {
		return nil, ir.Broken(2, "the region has a %s, want a collective or a slice", do.Name())
	}
	if r := carried(3, "operands, for the region", ir.TypesOf(op.Operands), ir.TypesOf(b.Args)); r != nil {
		return nil, r
	}
	if len(do.Operands) != len(b.Args) {
		return nil, ir.Broken(3, "%s takes %s, the region %d", do.Name(), ir.Counted(len(do.Operands), "value"), len(b.Args))
	}
	for i, v := range do.Operands {
		if v != b.Args[i] {
			return nil, ir.Broken(3, "operand %d of %s is not argument %d of the region", i, do.Name(), i)
		}
	}
	if len(ret.Operands) != len(do.Results) {
		return nil, ir.Broken(4, "the region returns %s, %s has %d", ir.Counted(len(ret.Operands), "value"), do.Name(), len(do.Results))
	}
	for i, v := range ret.Operands {
		if v != do.Results[i] {
			return nil, ir.Broken(4, "the region returns something else than result %d of %s", i, do.Name())
		}
	}
	return []*ir.Type{{Kind: ir.FutureType, Elems: ir.TypesOf(ret.Operands)}}, nil
}

func inferAsyncDone(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	t := op.Operands[0].Type
	if t.Kind != ir.FutureType {
		return nil, ir.Broken(0, "operand 0 is %s, want a future", t)
	}
	if have := ir.TypesOf(op.Results); len(have) != len(t.Elems) {
		return nil, ir.Broken(1, "%s for %s", ir.Counted(len(have), "result"), t)
	}
	for i, v := range op.Results {
		if !ir.Compatible(t.Elems[i], v.Type) {
			return nil, ir.Broken(1, "result %d is %s, operand 0 is %s", i, v.Type, t)
		}
	}
	return append([]*ir.Type{}, t.Elems...), nil
}

// received checks that the results of op are tensors, and a token at the end;
// constraints n, n+1 and n+2 are that there are some, their types, and the token.
func received(op *ir.Op, n [3]int) ([]*ir.Type, *ir.Rule) {
	if t := op.Operands[0].Type; !isToken(t) {
		return nil, ir.Broken(0, "operand 0 is %s, want a token", t)
	}
	ts := ir.TypesOf(op.Results)
	last := len(ts) - 1
	if last < 0 {
		return nil, ir.Broken(n[0], "there are no results, want a token at least")
	}
	for i, t := range ts[:last] {
		if !t.IsTensor() || !t.IsStatic() {
			return nil, ir.Broken(n[1], "result %d is %s, want a tensor of known sizes before the token", i, t)
		}
	}
	if !isToken(ts[last]) {
		return nil, ir.Broken(n[2], "result %d is %s, want a token", last, ts[last])
	}
	return ts, nil
}

// handedOut checks that the operands of op are tensors, and a token at the end.
func handedOut(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	last := len(op.Operands) - 1
	for i, v := range op.Operands {
		switch {
		case i == last && !isToken(v.Type):
			return nil, ir.Broken(0, "operand %d is %s, want a token", i, v.Type)
		case i < last && !v.Type.IsTensor():
			return nil, ir.Broken(0, "operand %d is %s, want a tensor before the token", i, v.Type)
		}
	}
	return []*ir.Type{ir.Token()}, nil
}

func inferInfeed(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := received(op, [3]int{1, 2, 3})
	if r == nil {
		r = infeedLayout(op)
	}
	return ts, r
}

// infeedLayout: C4 a layout, if there is one, lists the dimensions of each result
// but the token.
func infeedLayout(op *ir.Op) *ir.Rule {
	a := op.Attrs.Get("layout")
	if a == nil {
		return nil
	}
	layouts, ok := a.(ir.Array)
	if n := len(op.Results) - 1; !ok || len(layouts) != n {
		return ir.Broken(4, "layout is %s, want a list for each of %s before the token", a, ir.Counted(n, "result"))
	}
	for i, l := range layouts {
		dims, ok := l.(ir.Array)
		for _, d := range dims {
			ok = ok && ir.Is[ir.Int](d)
		}
		if !ok {
			return ir.Broken(4, "layout of result %d is %s, want a list of dimensions", i, l)
		}
	}
	return nil
}

func inferOutfeed(op *ir.Op) ([]*ir.Type, *ir.Rule) { return handedOut(op) }

// The types of channels.
const (
	deviceToDevice = 1
	deviceToHost   = 2
	hostToDevice   = 3
)

var channelTypes = map[int]string{deviceToDevice: "DEVICE_TO_DEVICE", deviceToHost: "DEVICE_TO_HOST", hostToDevice: "HOST_TO_DEVICE"}

// channelFits checks that the channel of op has the type host where the host is at
// its other end, and joins devices otherwise (5), and that its pairs are such as a
// permute has (1 to 4).
func channelFits(op *ir.Op, host int) *ir.Rule {
	c, _ := op.Attrs.Get("channel_handle").(ir.Channel)
	want := deviceToDevice
	if op.Bool("is_host_transfer") {
		want = host
	}
	if c.Type != want {
		return ir.Broken(5, "the channel has type %d, want %d, %s, with is_host_transfer = %t", c.Type, want, channelTypes[want], op.Bool("is_host_transfer"))
	}
	if l := op.Literal("source_target_pairs"); l != nil && l.Type.NumElements() > 0 {
		return permutePairs(l)
	}
	return nil
}

func inferSend(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := handedOut(op)
	return ts, first(r, channelFits(op, deviceToHost))
}

func inferRecv(op *ir.Op) ([]*ir.Type, *ir.Rule) {
	ts, r := received(op, [3]int{0, 0, 0})
	return ts, first(channelFits(op, hostToDevice), r)
}

// gridFits, for interpreter.run_parallel: C1 there are programs; C2 as many in each
// row; C3 functions of the module; C4 they take as many values as there are
// operands; C5 and return as many as there are results; C6 each function of the
// infeed exists and returns one tensor.
func gridFits(m *ir.Module, op *ir.Op) *ir.Rule {
	rows, _ := op.Attrs.Get("programs").(ir.Array)
	if len(rows) == 0 {
		return ir.Broken(1, "there are no programs")
	}
	var in, out, width int
	for i, row := range rows {
		names, ok := row.(ir.Array)
		if i == 0 {
			width = len(names)
		}
		if !ok || len(names) == 0 || len(names) != width {
			return ir.Broken(2, "row %d of the programs is %s, want a list of %s as in row 0", i, row, ir.Counted(max(width, 1), "function"))
		}
		for _, name := range names {
			f, r := functionOf(m, 3, name)
			if r != nil {
				return r
			}
			takes, returns, _ := f.Signature()
			in, out = in+len(takes), out+len(returns)
		}
	}
	if in != len(op.Operands) {
		return ir.Broken(4, "%s, the programs take %d", ir.Counted(len(op.Operands), "operand"), in)
	}
	if out != len(op.Results) {
		return ir.Broken(5, "%s, the programs return %d", ir.Counted(len(op.Results), "result"), out)
	}
	return infeedFits(m, op)
}

func infeedFits(m *ir.Module, op *ir.Op) *ir.Rule {
	infeed, ok := op.Attrs.Get("infeed").(ir.Array)
	if ok && len(infeed) == 0 {
		return ir.Broken(6, "the infeed is empty, want functions, or no infeed")
	}
	for _, name := range infeed {
		f, r := functionOf(m, 6, name)
		if r != nil {
			return r
		}
		if _, returns, _ := f.Signature(); len(returns) != 1 || !returns[0].IsTensor() {
			return ir.Broken(6, "%s of the infeed returns %v, want one tensor", name, returns)
		}
	}
	return nil
}

func functionOf(m *ir.Module, rule int, name ir.Attr) (*ir.Func, *ir.Rule) {
	sym, ok := name.(ir.Sym)
	if f := m.Func(string(sym)); ok && f != nil {
		return f, nil
	}
	return nil, ir.Broken(rule, "there is no function %s", fmt.Sprint(name))
}
