package runtime

import (
	"time"

	"ppc/ir"
)

// A replay goes through the program as a device did, by the words of its recorder.
type replay struct {
	t      *Timeline
	words  []uint32 // that are still to come
	at     int64    // when the last step ended that has no others in it
	open   []Event  // of steps that share a reading which is still to come
	events []Event
	pauses []Pause
}

// Events are the ops that a device executed, in the order in which they began, and
// the times when it waited, each inside of the event of a collective. An op with
// others in it that was not over when the device failed ends with the last of them.
func (t *Timeline) Events(device int) ([]Event, []Pause) {
	x := &t.recorders[device]
	p := &replay{t: t, at: x.began}
	for _, page := range append(x.full[:len(x.full):len(x.full)], x.page) {
		p.words = append(p.words, page...)
	}
	if b, ok := p.begins(); ok {
		p.block(b, -1)
	}
	p.close(0)
	return p.events, p.pauses
}

func (p *replay) time(t int64) time.Duration { return p.t.scale.Time(t) }

// next is the kind of the next word; none is left if it is not ok.
func (p *replay) next() (kind uint32, ok bool) {
	if len(p.words) == 0 {
		return 0, false
	}
	return p.words[0] &^ wordNumber, true
}

func (p *replay) take() uint32 {
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *replay) ticks() int64 {
	w := p.take()
	if w&^wordNumber == wordLong {
		return int64(w&wordNumber)<<32 | int64(p.take())
	}
	return int64(w)
}

// begins is the block that begins, if one does.
func (p *replay) begins() (*block, bool) {
	if kind, ok := p.next(); !ok || kind != wordBlock {
		return nil, false
	}
	return p.t.exe.blocks[p.take()&wordNumber], true
}

// block goes through b. A step that fails is the last of it.
func (p *replay) block(b *block, iteration int32) {
	for i := 0; i < len(b.steps); {
		kind, ok := p.next()
		if !ok || kind == wordEnd {
			return
		}
		s := &b.steps[i]
		if s.holds {
			at := len(p.events)
			p.events = append(p.events, Event{Op: int32(s.id), Iteration: iteration, Begin: p.time(p.at)})
			p.blocks(s, iteration)
			p.events[at].End = p.time(p.at)
			i++
			continue
		}
		if p.open = append(p.open, Event{Op: int32(s.id), Iteration: iteration}); !s.untimed && !p.leaf() {
			return
		}
		i++
	}
}

// blocks goes through what is in s.
func (p *replay) blocks(s *step, iteration int32) {
	loop := s.op.Kind.Has(ir.Loop)
	if loop {
		iteration = -1
	}
	for {
		b, ok := p.begins()
		if !ok {
			break
		}
		if loop && b == s.blocks[0] {
			iteration++
		}
		p.block(b, iteration)
	}
	if kind, ok := p.next(); ok && kind != wordEnd {
		p.close(p.ticks())
	}
	if _, ok := p.next(); ok {
		p.take() // its end
	}
}

// leaf goes through a step that has no others in it, the last of those that share a reading.
// It reports whether they ended.
func (p *replay) leaf() bool {
	open := p.waits(p.open[0].Op)
	if _, ok := p.next(); !ok {
		p.open = nil
		return false
	}
	p.close(p.ticks())
	if open {
		p.pauses[len(p.pauses)-1].End = p.time(p.at)
	}
	return true
}

// close gives each of the steps that share a reading, n ticks after the last one, an equal
// part of the time.
func (p *replay) close(n int64) {
	begin := p.at
	for i, e := range p.open {
		end := begin + n*int64(i+1)/int64(len(p.open))
		e.Begin, e.End = p.time(p.at), p.time(end)
		p.events = append(p.events, e)
		p.at = end
	}
	p.open = p.open[:0]
}

// waits goes through the pauses of a step, and reports whether the last one ends with it.
func (p *replay) waits(op int32) (open bool) {
	for {
		kind, ok := p.next()
		if !ok || kind != wordPause && kind != wordWaits {
			return open
		}
		on, begin := int32(p.take()&wordNumber), p.at
		if kind == wordPause {
			begin += p.ticks()
		}
		if open {
			p.pauses[len(p.pauses)-1].End = p.time(begin)
		}
		ready := begin + p.ticks()
		end := ready
		if open = kind == wordWaits; !open {
			end += p.ticks()
		}
		p.pauses = append(p.pauses, Pause{On: on, Op: op, Begin: p.time(begin), Ready: p.time(ready), End: p.time(end)})
	}
}
