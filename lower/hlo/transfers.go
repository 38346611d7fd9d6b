package hlo

import (
	"strings"

	"ppc/ir"
)

// byName are the ops of StableHLO without a kind that HLO has too: what makes tokens, takes
// turns by them with the host and other devices, and draws numbers. They are written as XLA
// writes them.
var byName = map[string]func(c *computation, op *ir.Op){
	"stablehlo.after_all":    (*computation).afterAll,
	"stablehlo.create_token": (*computation).afterAll,
	"stablehlo.infeed":       (*computation).infeed,
	"stablehlo.outfeed":      (*computation).outfeed,
	"stablehlo.recv":         (*computation).receive,
	"stablehlo.rng":          (*computation).random,
	"stablehlo.send":         (*computation).send,
}

func (c *computation) afterAll(op *ir.Op) {
	c.results(op, "after-all", c.operands(op.Operands), "")
}

// random appends an rng, whose shape is in its type alone.
func (c *computation) random(op *ir.Op) {
	if t := op.Result().Type; !t.IsStatic() {
		c.fail(op, "the sizes of %s are computed, and HLO must know every one", t)
		return
	}
	c.results(op, "rng", c.operands(op.Operands[:2]), ", distribution=rng_"+strings.ToLower(op.Word("rng_distribution")))
}

// infeed appends an infeed, which is ((values), token).
func (c *computation) infeed(op *ir.Op) {
	data := ir.Types(op.Results[:len(op.Results)-1])
	c.layouts = infeedLayouts(op)
	c.received(op, c.emit("infeed", ir.Tuple(ir.Tuple(data...), ir.Token()), "infeed", c.operands(op.Operands), config(op, "infeed_config")+verbatim(op.Attrs, nil)+c.metadata(op)))
}

// infeedLayouts are the layouts of what op hands in, where its attribute lists others than the
// default: the dimensions of each value, minor first.
func infeedLayouts(op *ir.Op) string {
	lists, _ := op.Attrs.Get("layout").(ir.Array)
	texts := make([]string, len(lists))
	for i, a := range lists {
		list, _ := a.(ir.Array)
		order, natural := make([]int, len(list)), true
		for k, d := range list {
			n, _ := d.(ir.Int)
			order[k] = n.Value
			natural = natural && n.Value == len(list)-1-k
		}
		if !natural {
			texts[i] = braced(order)
		}
	}
	return strings.TrimRight(strings.Join(texts, " "), " ")
}

// outfeed appends an outfeed of the tuple of its values.
func (c *computation) outfeed(op *ir.Op) {
	data, token := op.Operands[:len(op.Operands)-1], op.Operands[len(op.Operands)-1]
	tuple := c.tuple(data, nil)
	c.results(op, "outfeed", []instruction{tuple, c.use(token)}, ", outfeed_shape="+layoutText(tuple.typ, tuple.layouts)+config(op, "outfeed_config"))
}

// config is an attribute that is a string, left out where it is empty.
func config(op *ir.Op, name string) string {
	if s := op.Str(name); s != "" {
		return ", " + name + "=" + quote(s)
	}
	return ""
}

// send appends a send of its value, or of the tuple of several, and what ends it.
func (c *computation) send(op *ir.Op) {
	data, token := op.Operands[:len(op.Operands)-1], op.Operands[len(op.Operands)-1]
	var in instruction
	if len(data) == 1 {
		in = c.use(data[0])
	} else {
		in = c.tuple(data, nil)
	}
	attrs := c.transfer(op)
	start := c.emit("send", ir.Tuple(in.typ, ir.Tensor(ir.UI32), ir.Token()), "send", []instruction{in, c.use(token)}, attrs)
	c.results(op, "send-done", []instruction{start}, attrs)
}

// receive appends a recv and what ends it: (value, token), or ((values), token) of several.
func (c *computation) receive(op *ir.Op) {
	data := tupleOf(ir.Types(op.Results[:len(op.Results)-1]))
	attrs := c.transfer(op)
	start := c.emit("recv", ir.Tuple(data, ir.Tensor(ir.UI32), ir.Token()), "recv", c.operands(op.Operands), attrs)
	c.received(op, c.emit("recv-done", ir.Tuple(data, ir.Token()), "recv-done", []instruction{start}, attrs+verbatim(op.Attrs, nil)+c.metadata(op)))
}

// received appends the results of op: the parts of tuple, which is (value, token) or ((values), token).
func (c *computation) received(op *ir.Op, tuple instruction) {
	n := len(op.Results) - 1
	token := op.Results[n]
	switch {
	case n == 0:
	case tuple.typ.Elems[0].Kind == ir.TupleType:
		data := c.element(tuple, 0, "get-tuple-element")
		for i, v := range op.Results[:n] {
			c.part(v, data, i)
		}
	default:
		c.part(op.Results[0], tuple, 0)
	}
	c.part(token, tuple, 1)
}

// part appends element i of tuple as v, where it is used.
func (c *computation) part(v *ir.Value, tuple instruction, i int) {
	if c.uses[v.ID] > 0 {
		c.values[v.ID] = c.element(tuple, i, c.want(v, "get-tuple-element"))
	}
}

// transfer is what both parts of a send or recv say: the channel, whether it is one to the
// host, and between which devices.
func (c *computation) transfer(op *ir.Op) string {
	attrs := ""
	for _, f := range []field{channelID(), flag("is_host_transfer", "is_host_transfer")} {
		text, err := f.print(c.m, op)
		if err != nil {
			c.fail(op, "%v", err)
		}
		if text != "" {
			attrs += ", " + f.name + "=" + text
		}
	}
	if op.Attrs.Has("source_target_pairs") {
		text, err := pairs().print(c.m, op)
		if err != nil {
			c.fail(op, "%v", err)
		}
		attrs += ", frontend_attributes={_xla_send_recv_source_target_pairs=" + text + "}"
	}
	return attrs
}
