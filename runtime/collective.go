package runtime

import (
	"fmt"
	"sync/atomic"

	"ppc/ir"
)

// A collective is an op in which devices meet, with its groups as lists.
type collective struct {
	index int
	op    *ir.Op

	// Of a permute: by device, where it sends to and gets from; -1 for nowhere.
	to, from []int
	zeros    *buffer

	// Of the others.
	groups       [][]int
	group, place []int // by device: its group and its place there; -1 for none

	// before makes of the operands of a group one list that stands for all, which the last
	// one to come does; nil leaves them.
	before func(d *device, parts [][]*buffer) []*buffer

	// together makes the results that all devices of a group share; the last
	// one to come does it for all. own makes the results of one device. One of
	// them is set.
	together func(d *device, s *step, parts [][]*buffer) []*buffer
	own      func(d *device, s *step, parts [][]*buffer, place int) []*buffer
}

// meets is how many devices a device has to do with here: those of its group,
// or itself and the one that it gets from.
func (c *collective) meets(device int) int {
	if c.from != nil {
		if from := c.from[device]; from >= 0 && from != device {
			return 2
		}
		return 1
	}
	if g := c.group[device]; g >= 0 {
		return len(c.groups[g])
	}
	return 1
}

// enter counts a collective of d, and kills it if its time has come.
func (d *device) enter(s *step) error {
	d.met++
	if d.met == d.killAt {
		return fmt.Errorf("killed at collective number %d", d.met)
	}
	if d.times != nil {
		d.times[s.coll.index]++
	}
	return nil
}

func (c *compiler) collective(s *step) *collective {
	s.coll = &collective{index: len(c.exe.colls), op: s.op}
	c.exe.colls = append(c.exe.colls, s.coll)
	return s.coll
}

// A box is where a device gets what another sends it: one buffer at a time, so
// that a sender runs ahead by at most one.
type box struct {
	b        *buffer // nil: empty
	receiver *device // parked until the box is full
	sender   *device // parked until it is empty
}

type (
	waitsForSender   struct{ c *collective }
	waitsForReceiver struct{ c *collective }
)

func (w waitsForSender) missing(_ *run, d *device) int   { return w.c.from[d.id] }
func (w waitsForReceiver) missing(_ *run, d *device) int { return w.c.to[d.id] }
func (w waitsForSender) on(d *device) int                { return w.c.from[d.id] }
func (w waitsForSender) only() bool                      { return true }
func (w waitsForReceiver) only() bool                    { return true }
func (w waitsForReceiver) on(d *device) int              { return w.c.to[d.id] }

func compilePermute(c *compiler, s *step) error {
	to, err := c.grid.pairs(s.op)
	if err != nil {
		return err
	}
	coll := c.collective(s)
	coll.to, coll.from = to, sources(to)
	coll.zeros = c.zeros(s.op.Result().Type)
	s.exec = execPermute
	return nil
}

func execPermute(d *device, s *step) error {
	if err := d.enter(s); err != nil {
		return err
	}
	c, r := s.coll, d.run
	to, from := c.to[d.id], c.from[d.id]
	if to == d.id {
		return execAlias(d, s)
	}
	if to < 0 && from < 0 {
		d.put(s, 0, c.zeros)
		return nil
	}
	r.mu.Lock()
	if to >= 0 {
		box := &r.boxes[c.index][to]
		for box.b != nil {
			box.sender = d
			if err := r.park(d, waitsForReceiver{c}); err != nil {
				return err
			}
		}
		box.b = d.take(s, 0)
		if box.receiver != nil {
			r.readyBy(d, box.receiver)
			box.receiver = nil
		}
	}
	got := c.zeros
	if from >= 0 {
		box := &r.boxes[c.index][d.id]
		for box.b == nil {
			box.receiver = d
			if err := r.park(d, waitsForSender{c}); err != nil {
				return err
			}
		}
		got, box.b = box.b, nil
		if box.sender != nil {
			r.readyBy(d, box.sender)
			box.sender = nil
		}
	}
	r.mu.Unlock()
	d.put(s, 0, got)
	return nil
}

// A meeting is a group on its way to a collective. Its members wait until the
// last one has come, so that one meeting serves all epochs.
type meeting struct {
	parts   [][]*buffer // operands, by place; nil until that device comes
	arrived int
	kept    []keptGather // by result
}

// An exchange is what the members take away from a meeting: the results that
// they share, or the operands of all.
type exchange struct {
	parts   [][]*buffer
	results []*buffer
	left    atomic.Int32 // members that still need the parts
	by      int          // the device that came last
}

type waitsForGroup struct{ c *collective }

func (w waitsForGroup) missing(r *run, d *device) int {
	g := w.c.group[d.id]
	for place, part := range r.rooms[w.c.index][g].parts {
		if part == nil {
			return w.c.groups[g][place]
		}
	}
	return d.id // not reached: a full meeting lets its members go
}

func (w waitsForGroup) on(d *device) int { return d.exchange.by }

func (w waitsForGroup) only() bool { return false }

func compileMeeting(c *compiler, s *step) error {
	if err := c.inGroups(s); err != nil {
		return err
	}
	return meetings[s.op.Kind](c, s)
}

// inGroups makes s a step in which the groups of its op meet.
func (c *compiler) inGroups(s *step) error {
	groups, err := c.grid.groups(s.op)
	if err != nil {
		return err
	}
	coll := c.collective(s)
	coll.groups = groups
	coll.group, coll.place = places(groups, c.grid.size())
	s.exec = execMeeting
	return nil
}

func execMeeting(d *device, s *step) error {
	if err := d.enter(s); err != nil {
		return err
	}
	c := s.coll
	g := c.group[d.id]
	if g < 0 { // of a broadcast: no device sends here
		d.put(s, 0, c.zeros)
		return nil
	}
	mine := make([]*buffer, len(s.op.Operands))
	for i := range mine {
		mine[i] = d.take(s, i)
	}
	x := &exchange{parts: [][]*buffer{mine}}
	if n := len(c.groups[g]); n > 1 {
		var err error
		if x, err = d.meet(s, g, mine); err != nil {
			return err
		}
	} else {
		d.conclude(s, x, 1)
	}
	results := x.results
	if c.own != nil {
		results = c.own(d, s, x.parts, c.place[d.id])
		if x.left.Add(-1) == 0 {
			d.releaseAll(x.parts)
		}
	}
	for i, b := range results {
		d.put(s, i, b)
	}
	return nil
}

func (d *device) releaseAll(parts [][]*buffer) {
	for _, bs := range parts {
		for _, b := range bs {
			d.release(b)
		}
	}
}

// conclude makes of x, which holds the operands of all n members, what the
// members take away.
func (d *device) conclude(s *step, x *exchange, n int) {
	x.left.Store(int32(n))
	if s.coll.before != nil {
		parts := x.parts
		x.parts = [][]*buffer{s.coll.before(d, parts)}
		d.releaseAll(parts)
	}
	if s.coll.together == nil {
		return
	}
	x.results = s.coll.together(d, s, x.parts)
	for _, b := range x.results {
		for range n - 1 {
			b.retain()
		}
	}
	d.releaseAll(x.parts)
}

// meet brings d's operands to its group and returns what came of it.
func (d *device) meet(s *step, g int, mine []*buffer) (*exchange, error) {
	c, r := s.coll, d.run
	group := c.groups[g]
	m := &r.rooms[c.index][g]
	r.mu.Lock()
	if m.parts == nil {
		m.parts = make([][]*buffer, len(group))
	}
	m.parts[c.place[d.id]] = mine
	m.arrived++
	if m.arrived < len(group) {
		if err := r.park(d, waitsForGroup{c}); err != nil {
			return nil, err
		}
		r.mu.Unlock()
		return d.exchange, nil
	}
	x := &exchange{parts: m.parts, by: d.id}
	m.parts, m.arrived = nil, 0
	r.mu.Unlock()
	d.conclude(s, x, len(group))
	r.mu.Lock()
	for _, id := range group {
		if id != d.id {
			r.devices[id].exchange = x
			r.ready(r.devices[id])
		}
	}
	r.mu.Unlock()
	return x, nil
}
