package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/runtime/kernel"
)

// A route is a way of values from sends to receives: the n-th that is sent is the
// n-th that is received. Pairs of devices have routes of their own; a channel
// without pairs is one route, of whichever devices send and receive.
type route struct {
	channel  int
	from, to int // -1 where the channel alone says
}

// A lane is a route at work. Sends do not wait.
type lane struct {
	sent    [][]*buffer // by number; nil once it has been received
	begun   int         // receives
	waiting map[int]*device
}

// lane is the lane of r; run.mu is held.
func (r *run) lane(at route) *lane {
	if r.lanes == nil {
		r.lanes = make(map[route]*lane)
	}
	l := r.lanes[at]
	if l == nil {
		l = &lane{waiting: make(map[int]*device)}
		r.lanes[at] = l
	}
	return l
}

// send hands values, with their references, to the route.
func (d *device) send(at route, values []*buffer) {
	r := d.run
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lane(at)
	n := len(l.sent)
	l.sent = append(l.sent, values)
	if receiver := l.waiting[n]; receiver != nil {
		delete(l.waiting, n)
		receiver.exchange = &exchange{by: d.id}
		r.ready(receiver)
	}
}

// begin takes the number of the next receive of the route.
func (d *device) begin(at route) int {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	l := d.run.lane(at)
	l.begun++
	return l.begun - 1
}

// receive waits for what is sent as number n.
func (d *device) receive(at route, n int) ([]*buffer, error) {
	r := d.run
	r.mu.Lock()
	l := r.lane(at)
	if n >= len(l.sent) {
		l.waiting[n] = d
		if err := r.park(d, waitsForSend{at}); err != nil {
			return nil, err
		}
	}
	values := l.sent[n]
	l.sent[n] = nil
	r.mu.Unlock()
	return values, nil
}

type waitsForSend struct{ at route }

func (w waitsForSend) missing(_ *run, d *device) int {
	if w.at.from < 0 {
		return d.id
	}
	return w.at.from
}
func (w waitsForSend) on(d *device) int { return d.exchange.by }

func (w waitsForSend) only() bool { return false }

// Tokens order effects, which the order of steps does here.
func token() *buffer { return pinned(nil) }

func compileToken(_ *compiler, s *step) error {
	if len(s.op.Results) != 1 || s.op.Results[0].Type.Kind != ir.TokenType {
		return errors.New("the result is not one token")
	}
	s.exec = func(d *device, s *step) error {
		d.put(s, 0, token())
		return nil
	}
	return nil
}

// neighbours are, by device, where a send of op goes and a receive comes from; -1
// for nowhere. Without pairs both are nil.
func (c *compiler) neighbours(op *ir.Op) (to, from []int, err error) {
	l := op.Literal("source_target_pairs")
	if l == nil || l.Type.NumElements() == 0 {
		return nil, nil, nil
	}
	if to, err = c.grid.pairs(op); err != nil {
		return nil, nil, err
	}
	return to, sources(to), nil
}

// sources inverts targets.
func sources(to []int) []int {
	from := make([]int, len(to))
	for d := range from {
		from[d] = -1
	}
	for d, t := range to {
		if t >= 0 {
			from[t] = d
		}
	}
	return from
}

// endsInToken checks that the last of vs is a token, and all before are tensors.
func endsInToken(what string, vs []*ir.Value) error {
	for i, v := range vs {
		if want := map[bool]ir.TypeKind{true: ir.TokenType, false: ir.TensorType}[i == len(vs)-1]; v.Type.Kind != want {
			return fmt.Errorf("%s %d is %s, want tensors and a token", what, i, v.Type)
		}
	}
	if len(vs) == 0 {
		return fmt.Errorf("there is no %s, want tensors and a token", what)
	}
	return nil
}

// compileSend is for stablehlo.send, whose last operand is a token.
func compileSend(c *compiler, s *step) error {
	if err := errors.Join(endsInToken("operand", s.op.Operands), endsInToken("result", s.op.Results)); err != nil {
		return err
	}
	to, _, err := c.neighbours(s.op)
	channel := channelOf(s.op)
	s.exec = func(d *device, s *step) error {
		at := route{channel, -1, -1}
		if to != nil {
			at = route{channel, d.id, to[d.id]}
		}
		if to == nil || at.to >= 0 {
			values := make([]*buffer, len(s.in)-1)
			for i := range values {
				values[i] = d.take(s, i)
			}
			d.send(at, values)
		}
		d.put(s, 0, token())
		return nil
	}
	return err
}

// compileReceive is for stablehlo.recv, whose last result is a token. A device that
// nobody sends to gets zeros.
func compileReceive(c *compiler, s *step) error {
	if err := endsInToken("result", s.op.Results); err != nil {
		return err
	}
	_, from, err := c.neighbours(s.op)
	channel, n := channelOf(s.op), len(s.out)-1
	zeros := make([]*buffer, n)
	for i := range zeros {
		zeros[i] = c.zeros(s.op.Results[i].Type)
	}
	s.exec = func(d *device, s *step) error {
		at, got := route{channel, -1, -1}, zeros
		if from != nil {
			at = route{channel, from[d.id], d.id}
		}
		if from == nil || at.from >= 0 {
			var err error
			if got, err = d.receive(at, d.begin(at)); err != nil {
				return err
			}
		}
		if len(got) != n {
			return fmt.Errorf("%s, %d received", ir.Counted(len(got), "value"), n)
		}
		for i, b := range got {
			if want := s.op.Results[i].Type; len(b.mem) != want.Bytes() {
				return fmt.Errorf("value %d that is sent has %d bytes, %s takes %d", i, len(b.mem), want, want.Bytes())
			}
			d.put(s, i, b)
		}
		d.put(s, n, token())
		return nil
	}
	return err
}

var hloPairs = regexp.MustCompile(`_xla_send_recv_source_target_pairs="?=?"?\{((?:\{\d+,\s*\d+\},?\s*)*)\}`)

// hloNeighbours reads the pairs of an instruction of HLO, which are in an attribute
// of the frontend's.
func (c *compiler) hloNeighbours(op *ir.Op) (to, from []int, err error) {
	to = make([]int, c.grid.size())
	for d := range to {
		to[d] = -1
	}
	m := hloPairs.FindStringSubmatch(op.Str("frontend_attributes"))
	if m == nil {
		return nil, nil, errors.New("there is no attribute _xla_send_recv_source_target_pairs, and what goes to the host is not executed")
	}
	var rows [][]int
	for pair := range strings.SplitSeq(strings.ReplaceAll(m[1], " ", ""), "},") {
		a, b, ok := strings.Cut(strings.Trim(pair, "{}"), ",")
		if !ok {
			continue
		}
		from, _ := strconv.Atoi(a)
		target, _ := strconv.Atoi(b)
		rows = append(rows, []int{from, target})
	}
	if err := densePairs(to, rows); err != nil {
		return nil, nil, err
	}
	return to, sources(to), nil
}

// tupleOf is a tuple of elements with their references.
func tupleOf(elems ...*buffer) *buffer {
	t := &buffer{elems: elems}
	t.refs.Store(1)
	return t
}

// The halves of HLO's transfers: what is between is a tuple of the data, a context
// and a token. All of a send is done when it starts. A receive takes its number when
// it starts, which is its context, and waits when it is done.

func compileHLOSend(c *compiler, s *step) error {
	if len(s.op.Operands) == 0 || len(s.op.Results) != 1 {
		return errors.New("want the data and a token, and one result")
	}
	if err := checkTuple(s.op.Results[0].Type); err != nil {
		return err
	}
	to, _, err := c.hloNeighbours(s.op)
	s.exec = func(d *device, s *step) error {
		data := d.slots[s.in[0]]
		if to[d.id] >= 0 {
			d.send(route{0, d.id, to[d.id]}, []*buffer{data.retain()})
		}
		d.put(s, 0, tupleOf(data.retain(), pinned(kernel.NewMem(4)), token()))
		return nil
	}
	return err
}

func compileHLOReceive(c *compiler, s *step) error {
	_, from, err := c.hloNeighbours(s.op)
	t := s.op.Results[0].Type
	if err != nil || t.Kind != ir.TupleType || len(t.Elems) < 1 || !t.Elems[0].IsTensor() {
		return errors.Join(err, checkTuple(t))
	}
	zeros := c.zeros(t.Elems[0])
	s.exec = func(d *device, s *step) error {
		context := kernel.NewMem(8)
		if from[d.id] >= 0 {
			n := d.begin(route{0, from[d.id], d.id})
			binary.LittleEndian.PutUint32(context, uint32(n))
			binary.LittleEndian.PutUint32(context[4:], uint32(from[d.id]+1))
		}
		d.put(s, 0, tupleOf(zeros, pinned(context), token()))
		return nil
	}
	return nil
}

func checkTuple(t *ir.Type) error {
	if t.Kind == ir.TupleType && len(t.Elems) > 0 && t.Elems[0].IsTensor() {
		return nil
	}
	return fmt.Errorf("the result is %s, want a tuple of the data, a context and a token", t)
}

func compileHLOSent(_ *compiler, s *step) error {
	return compileToken(nil, s)
}

func compileHLOReceived(_ *compiler, s *step) error {
	if len(s.op.Operands) != 1 {
		return errors.New("want the result of a recv")
	}
	if err := checkTuple(s.op.Operands[0].Type); err != nil {
		return err
	}
	s.exec = func(d *device, s *step) error {
		parts := d.slots[s.in[0]].elems
		if len(parts) < 2 || len(parts[1].mem) != 8 {
			return errors.New("the operand does not come from a recv")
		}
		data, context := parts[0].retain(), parts[1].mem
		if from := int(binary.LittleEndian.Uint32(context[4:])) - 1; from >= 0 {
			got, err := d.receive(route{0, from, d.id}, int(binary.LittleEndian.Uint32(context)))
			if err != nil {
				return err
			}
			data = got[0]
		}
		d.put(s, 0, tupleOf(data, token()))
		return nil
	}
	return nil
}

// Infeed gives the values that the infeeds of a run take, in the order in which they come.
func Infeed(values ...[]*ir.Literal) Option {
	return func(o *options) { o.infeed = values }
}

func compileInfeed(_ *compiler, s *step) error {
	if err := endsInToken("result", s.op.Results); err != nil {
		return err
	}
	s.exec = func(d *device, s *step) error {
		r := d.run
		r.mu.Lock()
		n := r.fed
		r.fed++
		r.mu.Unlock()
		if n >= len(r.infeed) {
			return fmt.Errorf("the host hands in %s, this is number %d", ir.Counted(len(r.infeed), "time"), n+1)
		}
		last := len(s.out) - 1
		if len(r.infeed[n]) != last {
			return fmt.Errorf("the host hands in %s, want %d", ir.Counted(len(r.infeed[n]), "value"), last)
		}
		for i, l := range r.infeed[n] {
			if err := checkArg(l, s.op.Results[i].Type); err != nil {
				return fmt.Errorf("what the host hands in as value %d %w", i, err)
			}
			d.put(s, i, pinned(kernel.FromLiteral(l)))
		}
		d.put(s, last, token())
		return nil
	}
	return nil
}

// compileOutfeed drops what goes to the host: nobody there reads it.
func compileOutfeed(_ *compiler, s *step) error { return compileToken(nil, s) }

// Probe gives f the values that the probes of a run see, by the id of the probe.
func Probe(f func(id string, value *ir.Literal)) Option {
	return func(o *options) { o.probe = f }
}

func compileProbe(_ *compiler, s *step) error {
	if len(s.op.Operands) != 1 || len(s.op.Results) != 1 || !s.op.Operands[0].Type.IsTensor() {
		return errors.New("a probe looks at one tensor")
	}
	id, t := s.op.Str("probe_id"), s.op.Operands[0].Type
	s.exec = func(d *device, s *step) error {
		if r := d.run; r.probe != nil {
			r.mu.Lock()
			r.probe(id, kernel.ToLiteral(t, slices.Clone(d.slots[s.in[0]].mem)))
			r.mu.Unlock()
		}
		return execAlias(d, s)
	}
	return nil
}

// named has the rows of ops without a Kind.
var named = map[string]compileFunc{
	"stablehlo.after_all":         compileToken,
	"stablehlo.create_token":      compileToken,
	"stablehlo.infeed":            compileInfeed,
	"stablehlo.outfeed":           compileOutfeed,
	"stablehlo.send":              compileSend,
	"stablehlo.recv":              compileReceive,
	"stablehlo.collective_reduce": compileCollectiveReduce,

	"interpreter.probe": compileProbe,

	"hlo.after-all": compileToken,
	"hlo.send":      compileHLOSend,
	"hlo.send-done": compileHLOSent,
	"hlo.recv":      compileHLOReceive,
	"hlo.recv-done": compileHLOReceived,
}
