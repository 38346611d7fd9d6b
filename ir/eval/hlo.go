package eval

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
)

// hloOp evaluates the instructions of HLO that StableHLO has no op for, which the
// reader of HLO text carries through with their attributes as text; nil for
// others. What HLO
// splits in time is done when it starts, but for a receive, which waits when it
// is done.
func hloOp(name string) func(*exec) ([]*tensor, error) {
	switch name {
	case "hlo.copy", "hlo.domain", "hlo.add-dependency", "hlo.all-reduce-done", "hlo.async-update", "hlo.copy-done":
		return func(e *exec) ([]*tensor, error) { return e.in[:1], nil }
	case "hlo.copy-start":
		return func(e *exec) ([]*tensor, error) {
			return []*tensor{{parts: []*tensor{e.in[0], e.in[0], newTensor(ir.UI32, nil)}}}, nil
		}
	case "hlo.after-all":
		return func(e *exec) ([]*tensor, error) { return []*tensor{new(tensor)}, nil }
	case "hlo.all-to-all":
		return hloAllToAll
	case "hlo.all-reduce-start":
		return hloStart(ir.AllReduce)
	case "hlo.all-gather-start":
		return hloStart(ir.AllGather)
	case "hlo.collective-permute-start":
		return hloStart(ir.CollectivePermute)
	case "hlo.all-gather-done", "hlo.collective-permute-done", "hlo.async-done":
		return func(e *exec) ([]*tensor, error) { return e.in[0].parts[1:2], nil }
	case "hlo.async-start":
		return hloAsync
	case "hlo.send":
		return hloSend
	case "hlo.recv":
		return hloReceive
	case "hlo.send-done":
		return func(e *exec) ([]*tensor, error) { return e.in[0].parts[2:3], nil }
	case "hlo.recv-done":
		return hloReceived
	}
	return nil
}

var hloList = regexp.MustCompile(`\{([\d,\s-]*)\}`)

// hloLists are the innermost lists of numbers of an attribute: {{0,1},{2,3}}.
func hloLists(text string) [][]int {
	var lists [][]int
	for _, m := range hloList.FindAllStringSubmatch(text, -1) {
		var list []int
		for _, s := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			n, _ := strconv.Atoi(s)
			list = append(list, n)
		}
		if list != nil {
			lists = append(lists, list)
		}
	}
	return lists
}

// hloTable is lists as a literal, short ones padded with -1.
func hloTable(lists [][]int) *ir.Literal {
	width := 0
	for _, l := range lists {
		width = max(width, len(l))
	}
	var flat []int
	for _, l := range lists {
		flat = append(append(flat, l...), slices.Repeat([]int{-1}, width-len(l))...)
	}
	return ir.Ints64(ir.Tensor(ir.I64, len(lists), width), flat...)
}

// hloAs is e as if its op were one of kind k with a result of type t.
func (e *exec) hloAs(k ir.Kind, t *ir.Type) (*exec, error) {
	op := &ir.Op{Kind: k, Operands: e.op.Operands, Origin: e.op.Origin}
	op.Results = []*ir.Value{{Type: t, Def: op}}
	op.Attrs.Set("replica_groups", hloTable(hloLists(e.op.Str("replica_groups"))))
	op.Attrs.Set("source_target_pairs", hloTable(hloLists(e.op.Str("source_target_pairs"))))
	if n, err := strconv.Atoi(e.op.Str("channel_id")); err == nil {
		op.Attrs.Set("channel_handle", ir.Channel{Handle: n, Type: 1})
	}
	if e.op.Str("use_global_device_ids") == "true" {
		op.Attrs.Set("use_global_device_ids", ir.Unit{})
	}
	if dims := hloLists(e.op.Str("dimensions")); len(dims) == 1 {
		op.Attrs.Set("all_gather_dim", ir.I64Attr(dims[0][0]))
	}
	fr := e.fr
	if name := e.op.Sym("to_apply"); name != "" {
		f := e.p.w.m.Func(name)
		if f == nil || f.Body == nil {
			return nil, fmt.Errorf("there is no function %s", ir.SymbolText(name))
		}
		op.Regions, fr = []*ir.Block{f.Body}, make(frame, f.NumIDs())
	}
	return &exec{e.p, fr, op, e.in}, nil
}

// hloStart does all of the operation that it starts.
func hloStart(k ir.Kind) func(*exec) ([]*tensor, error) {
	return func(e *exec) ([]*tensor, error) {
		t := e.op.Results[0].Type
		pair := t.Kind == ir.TupleType
		if len(e.in) != 1 || pair && len(t.Elems) < 2 {
			return nil, fmt.Errorf("%d operands at once are not evaluated", len(e.in))
		}
		if pair {
			t = t.Elems[1]
		}
		as, err := e.hloAs(k, t)
		if err != nil {
			return nil, err
		}
		out, err := as.run()
		if err != nil || !pair {
			return out, err
		}
		parts := []*tensor{e.in[0], out[0]}
		for _, extra := range e.op.Results[0].Type.Elems[2:] {
			parts = append(parts, newTensor(extra.Elem, extra.Shape))
		}
		return []*tensor{{parts: parts}}, nil
	}
}

func hloAsync(e *exec) ([]*tensor, error) {
	f := e.p.w.m.Func(e.op.Sym("calls"))
	if f == nil {
		return nil, fmt.Errorf("there is no function %s", ir.SymbolText(e.op.Sym("calls")))
	}
	out, err := e.p.call(f, e.in)
	if err != nil {
		return nil, err
	}
	result := out[0]
	if len(out) > 1 {
		result = &tensor{parts: out}
	}
	return []*tensor{{parts: []*tensor{{parts: e.in}, result}}}, nil
}

// hloAllToAll is the form of all-to-all in which the device at place i of the
// group gets operand i of every other.
func hloAllToAll(e *exec) ([]*tensor, error) {
	as, err := e.hloAs(ir.AllToAll, e.op.Results[0].Type)
	if err != nil {
		return nil, err
	}
	all, at, err := as.together()
	if err != nil {
		return nil, err
	}
	if len(all) != len(e.in) {
		return nil, fmt.Errorf("%d operands in a group of %d", len(e.in), len(all))
	}
	parts := column(all, at)
	if e.op.Results[0].Type.Kind != ir.TupleType {
		return parts[:1], nil
	}
	return []*tensor{{parts: parts}}, nil
}

// hloNeighbours are the devices that this one receives from and sends to; -1 for
// none. The pairs are in an attribute of the frontend's.
func (e *exec) hloNeighbours() (from, to int) {
	_, text, _ := strings.Cut(e.op.Str("frontend_attributes"), "_xla_send_recv_source_target_pairs=")
	if end := strings.Index(text, "}}"); end >= 0 {
		text = text[:end+2]
	}
	from, to = -1, -1
	for _, pair := range slices.Backward(hloLists(text)) { // the first one counts
		if len(pair) == 2 && pair[0] == e.p.rank {
			to = pair[1]
		}
		if len(pair) == 2 && pair[1] == e.p.rank {
			from = pair[0]
		}
	}
	return from, to
}

func hloRoute(from, to int) string { return fmt.Sprintf("send %d to %d", from, to) }

// hloSend does not wait. The n-th send on an edge is for the n-th receive.
func hloSend(e *exec) ([]*tensor, error) {
	w, rank := e.p.w, e.p.rank
	if _, to := e.hloNeighbours(); to >= 0 {
		route := hloRoute(rank, to)
		w.put(address{route, rank, w.epoch(rank, route)}, 1, e.in[:1])
	}
	return []*tensor{{parts: []*tensor{e.in[0], newTensor(ir.UI32, nil), new(tensor)}}}, nil
}

// hloReceive takes a number: the context has the sender and the count of transfers
// on the edge.
func hloReceive(e *exec) ([]*tensor, error) {
	t := e.op.Results[0].Type.Elems[0]
	context := newTensor(ir.UI32, nil)
	if from, _ := e.hloNeighbours(); from >= 0 {
		context.i[0] = int64(from+1)<<32 | int64(e.p.w.epoch(e.p.rank, "received "+hloRoute(from, e.p.rank)))
	}
	return []*tensor{{parts: []*tensor{newTensor(e.p.elem(t.Elem), t.Shape), context, new(tensor)}}}, nil
}

// hloReceived waits; a device that is no target has zeros.
func hloReceived(e *exec) ([]*tensor, error) {
	parts := e.in[0].parts
	data := parts[0]
	if c := parts[1].i[0]; c != 0 {
		from := int(c>>32) - 1
		got, err := e.p.w.get(e.p.rank, e.op, address{hloRoute(from, e.p.rank), from, int(c & (1<<32 - 1))})
		if err != nil {
			return nil, err
		}
		data = got[0]
	}
	return []*tensor{{parts: []*tensor{data, new(tensor)}}}, nil
}
