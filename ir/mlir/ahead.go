package mlir

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"ppc/internal/lines"
	"ppc/ir"
)

// A large text is read ahead. Drafts begin at lines that look as if an op did, a
// [draftBytes] apart; on each further core a parser reads them, without knowing where in
// the text they stand. Where the parser of the text comes to such a place in a list of
// ops, it takes over the ops of the draft, if all is as the draft assumed and it has met
// no error; else it reads the text itself. So what is read, and what is wrong with it,
// does not depend on drafts.

// draftBytes is the distance of drafts, some thousands of ops.
const draftBytes = 1 << 19

// draftDepth is how deep the ops of drafts may be nested in regions.
const draftDepth = maxDepth / 2

// A draft is a run of ops of one block that is read ahead.
type draft struct {
	from, to int // it begins with the op at from, and ends before the first one at to or later
	line     int // of from, counted from 0, which starts at
	start    int

	taken atomic.Bool   // by the parser of the text or one that reads ahead
	read  chan struct{} // closed when that one has read it

	// What was read. It is of use where good.
	good  bool
	ops   []*ir.Op
	end   int // where the token after the ops begins
	nodes int

	names scope        // that the ops define in their block
	inner []string     // names of regions inside, which may not be in use outside
	uses  []use        // of values that are defined before the draft
	first map[use]int  // the index of each
	held  []*ir.Value  // what holds the place of each
	slots []**ir.Value // the operands that are such
	found int          // how many have been read, those of ops that are not read to the end included
}

// A use is a value by its name in the text, result n of it. Until the draft is taken over
// its place is held by a value whose Index is -1 less the index of the use, of the
// type that the draft wants it to have, nil where it wants none.
type use struct {
	name string
	n    int
}

// ahead is the drafts of a text.
type ahead struct {
	drafts []*draft
	order  []*draft     // in which they are read ahead
	next   atomic.Int64 // of order
	stop   atomic.Bool  // they end
	all    sync.WaitGroup

	at   int // the next draft that the parser of the text may come to
	from int // where that begins
}

// types are the tensor types of a text that all its parsers share, by text.
type types struct {
	sync.Mutex
	known map[string]*ir.Type
}

// readAhead starts parsers that read drafts of the text, which are so many bytes apart, if
// it is large.
func (s *parser) readAhead(apart, parsers int) {
	if parsers <= 0 || len(s.src) < 4*apart {
		return
	}
	s.ahead = newAhead(drafts(s.src, apart), parsers)
	s.shared = &types{known: make(map[string]*ir.Type)}
	for range min(parsers, len(s.ahead.drafts)) {
		w := &parser{file: s.file, src: s.src, shared: s.shared, aliases: s.aliases, own: make(map[string]*alias)}
		s.ahead.all.Go(func() {
			for !s.ahead.stop.Load() {
				d := s.ahead.untaken()
				if d == nil {
					return
				}
				w.readDraft(d)
			}
		})
	}
}

// end ends those that read ahead and waits for them.
func (a *ahead) end() {
	if a != nil {
		a.stop.Store(true)
		a.all.Wait()
	}
}

// drafts are the places at which to read src ahead, so many bytes apart.
func drafts(src string, apart int) []*draft {
	var all []*draft
	line, counted := 0, 0
	for at := apart; at < len(src)-apart/2; {
		start, from := opLine(src, at)
		if from < 0 {
			at += apart
			continue
		}
		line += strings.Count(src[counted:start], "\n")
		counted = start
		if n := len(all); n > 0 {
			all[n-1].to = from
		}
		all = append(all, &draft{from: from, to: len(src), line: line, start: start, read: make(chan struct{})})
		at = start + apart
	}
	return all
}

// opLine returns where the next line after at begins that may begin an op with results, and
// where the op does; -1 where there is none soon.
func opLine(src string, at int) (start, from int) {
	for range 1 << 8 {
		n := strings.IndexByte(src[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
		from := at
		for from < len(src) && (src[from] == ' ' || src[from] == '\t') {
			from++
		}
		if from < len(src) && src[from] == '%' {
			return at, from
		}
	}
	return -1, -1
}

// newAhead has so many parsers read drafts ahead. They leave every so manyth to the parser
// of the text, which would else wait for what they have just begun, and help it with the
// last ones.
func newAhead(drafts []*draft, parsers int) *ahead {
	a := &ahead{drafts: drafts}
	var left []*draft
	for i, d := range drafts {
		if i%(parsers+1) == parsers {
			left = append(left, d)
		} else {
			a.order = append(a.order, d)
		}
	}
	slices.Reverse(left)
	a.order = append(a.order, left...)
	if len(drafts) > 0 {
		a.from = drafts[0].from
	}
	return a
}

// untaken takes the next draft for one that reads ahead; nil where there is none.
func (a *ahead) untaken() *draft {
	for i := int(a.next.Add(1)) - 1; i < len(a.order); i = int(a.next.Add(1)) - 1 {
		if d := a.order[i]; !d.taken.Swap(true) {
			return d
		}
	}
	return nil
}

// readDraft reads d ahead.
func (s *parser) readDraft(d *draft) {
	defer close(d.read)
	defer func() {
		// A bug shows again when the parser of the text comes here, whose caller can
		// say what was at work.
		if recover() != nil {
			d.good = false
		}
	}()
	d.first = make(map[use]int)
	d.slots = make([]**ir.Value, 0, s.room)
	s.draft, s.fn, s.read = d, ir.NewFunc(""), make([]*ir.Op, 0, s.room)
	s.scopes = []scope{{numbered: make([]*ir.Value, 0, s.room)}}
	s.lines = lines.From(d.line, d.start)
	s.nodes, s.depth = 0, draftDepth
	s.restart(d.from)
	for s.tok.start < d.to && (s.tok.kind == valueToken || s.tok.kind == nameToken || s.tok.kind == stringToken) {
		op := s.op()
		if s.failed {
			return
		}
		s.read = append(doubled(s.read), op)
	}
	d.ops, d.end, d.nodes, d.names = s.read, s.tok.start, s.nodes, s.scopes[0]
	d.good = len(d.ops) > 0
	s.room = len(d.ops) + len(d.ops)/8 // the next draft is of as much text
}

// takeOver appends to s.read the ops of the draft that begins with the next token, and
// makes what comes after them the next one. It reports false, having changed nothing that
// is read, where there is no such draft, nobody has begun to read it, or it is not what
// the text says here.
func (s *parser) takeOver() bool {
	a := s.ahead
	var d *draft
	for a.at < len(a.drafts) && a.drafts[a.at].from <= s.tok.start {
		d = a.drafts[a.at]
		a.at++
		if begun := d.taken.Swap(true); !begun || d.from < s.tok.start {
			d = nil
		}
	}
	a.from = len(s.src) + 1
	if a.at < len(a.drafts) {
		a.from = a.drafts[a.at].from
	}
	if d == nil {
		return false
	}
	<-d.read
	ops := d.ops
	if !d.good || !s.agrees(d) {
		a.stop.Store(true) // the text is not as drafts assume
		return false
	}
	s.nodes += d.nodes
	if n := len(s.read) + len(ops); n > cap(s.read) {
		left := float64(len(s.src)-d.end) / float64(d.end-d.from) // drafts, and each like this one
		s.read = slices.Grow(s.read, len(ops)+int(1.1*left*float64(len(ops))))
	}
	s.read = append(s.read, ops...)
	s.restart(d.end)
	d.ops, d.names, d.inner, d.uses, d.first, d.held, d.slots = nil, scope{}, nil, nil, nil, nil, nil
	return true
}

// agrees reports whether the parser of the text would have read d as it is, and if so
// makes the names of d those of the block and gives the operands of d what they stand for.
func (s *parser) agrees(d *draft) bool {
	if s.depth > draftDepth || s.nodes+d.nodes > maxNodes+2*len(s.src) {
		return false
	}
	values := make([]*ir.Value, len(d.uses))
	for i, u := range d.uses {
		vs := s.lookup(u.name)
		if u.n >= len(vs) {
			return false
		}
		values[i] = vs[u.n]
	}
	for _, slot := range d.slots {
		want, v := (*slot).Type, values[-1-(*slot).Index]
		if want != nil && v.Type != nil && !v.Type.Equal(want) {
			return false
		}
	}
	for _, name := range d.inner {
		if s.lookup(name) != nil {
			return false
		}
	}
	if !s.defineAll(&d.names) {
		return false
	}
	for _, slot := range d.slots {
		*slot = values[-1-(*slot).Index]
	}
	return true
}

// defineAll makes the names of c, of a block, those of the block at hand. It reports false,
// having changed nothing, where one is in use.
func (s *parser) defineAll(c *scope) bool {
	for i, v := range c.numbered {
		if v != nil && s.lookupNumber(c.first+i) != nil {
			return false
		}
	}
	for name := range c.values {
		if s.lookup(name) != nil {
			return false
		}
	}
	here := &s.scopes[len(s.scopes)-1]
	for i, v := range c.numbered {
		if v != nil && !here.setNumber(c.first+i, v) {
			here.set(strconv.Itoa(c.first+i), c.first+i, []*ir.Value{v})
		}
	}
	for name, vs := range c.values {
		here.set(name, numeral(name), vs)
	}
	return true
}

// outside is the value that holds the place of one that is defined before the draft.
func (s *parser) outside(name string, n int) *ir.Value {
	d := s.draft
	u := use{name, n}
	i, ok := d.first[u]
	if !ok {
		i = len(d.uses)
		d.first[u] = i
		d.uses = append(d.uses, u)
		d.held = append(d.held, &ir.Value{Index: -1 - i})
	}
	d.found++
	return d.held[i]
}

// unshared ends a draft where what is read next is kept by the parser of the text alone.
func (s *parser) unshared() {
	if s.draft != nil {
		s.giveUp()
	}
}

// isolated reports whether a region around what is read, in the draft, sees nothing from
// outside.
func (s *parser) isolated() bool {
	return slices.ContainsFunc(s.scopes, func(c scope) bool { return c.isolated })
}

// noteSlots notes which of the operands are of values that are defined before the draft.
func (d *draft) noteSlots(operands []*ir.Value) {
	for i, v := range operands {
		if v.Index < 0 {
			d.slots = append(d.slots, &operands[i])
		}
	}
}
