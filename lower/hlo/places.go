package hlo

import (
	"slices"

	"ppc/ir"
)

// sourcePlaces are the tables of a module that say where in the sources its
// instructions come from: a stack frame is a location, which is a line of a
// file. Each is by number.
type sourcePlaces struct {
	files     map[int]string
	locations map[int]sourceLocation
	frames    map[int]int // the location of each
}

type sourceLocation struct{ file, line, column int }

// sourceTables are the tables of source locations and what an entry of each,
// a text or named numbers, adds.
var sourceTables = []struct {
	name string
	add  func(p *sourcePlaces, id int, text string, field func(name string) int)
}{
	{"FileNames", func(p *sourcePlaces, id int, text string, _ func(string) int) { p.files[id] = text }},
	{"FunctionNames", func(*sourcePlaces, int, string, func(string) int) {}},
	{"FileLocations", func(p *sourcePlaces, id int, _ string, field func(string) int) {
		p.locations[id] = sourceLocation{field("file_name_id"), field("line"), field("column")}
	}},
	{"StackFrames", func(p *sourcePlaces, id int, _ string, field func(string) int) {
		p.frames[id] = field("file_location_id")
	}},
}

// sourcePlaces reads the tables of source locations, those that are there.
func (s *scanner) sourcePlaces() *sourcePlaces {
	p := &sourcePlaces{make(map[int]string), make(map[int]sourceLocation), make(map[int]int)}
	for _, t := range sourceTables {
		if !s.keyword(t.name) {
			continue
		}
		for c := s.peek(); '0' <= c && c <= '9' && s.err == nil; c = s.peek() {
			id, text := s.integer(), ""
			var names []string
			var numbers []int
			if s.peek() == '"' {
				text = s.quoted()
			} else {
				names, numbers = s.namedNumbers()
			}
			t.add(p, id, text, func(name string) int {
				if i := slices.Index(names, name); i >= 0 {
					return numbers[i]
				}
				return 0
			})
		}
	}
	return p
}

// namedNumbers reads {line=3 column=4}, as far as it has that form.
func (s *scanner) namedNumbers() (names []string, numbers []int) {
	text := s.group()
	in := &scanner{src: text, pos: 1, end: max(len(text)-1, 1)}
	for in.peek() != 0 {
		name := in.word("a name")
		in.expect("=")
		if n := in.integer(); in.err == nil {
			names, numbers = append(names, name), append(numbers, n)
		}
	}
	return names, numbers
}

// frame is the place of stack frame id; none where the tables do not say it.
func (p *sourcePlaces) frame(id int) ir.Pos {
	if p == nil {
		return ir.Pos{}
	}
	at := p.locations[p.frames[id]]
	if p.files[at.file] == "" || at.line < 1 {
		return ir.Pos{}
	}
	return ir.Pos{File: p.files[at.file], Line: at.line, Col: at.column}
}
