package syntax

import (
	"slices"

	"ppc/ir"
)

// Places are the tables of a module that say where in the sources its
// instructions come from: a stack frame is a location, which is a line of a
// file. Each is by number.
type Places struct {
	files     map[int]string
	locations map[int]sourceLocation
	frames    map[int]int // the location of each
}

type sourceLocation struct{ file, line, column int }

// sourceTables are the tables of source locations and what an entry of each,
// a text or named numbers, adds.
var sourceTables = []struct {
	name string
	add  func(p *Places, id int, text string, field func(name string) int)
}{
	{"FileNames", func(p *Places, id int, text string, _ func(string) int) { p.files[id] = text }},
	{"FunctionNames", func(*Places, int, string, func(string) int) {}},
	{"FileLocations", func(p *Places, id int, _ string, field func(string) int) {
		p.locations[id] = sourceLocation{field("file_name_id"), field("line"), field("column")}
	}},
	{"StackFrames", func(p *Places, id int, _ string, field func(string) int) {
		p.frames[id] = field("file_location_id")
	}},
}

// Places reads the tables of source locations, those that are there.
func (s *Scanner) sourcePlaces() *Places {
	p := &Places{make(map[int]string), make(map[int]sourceLocation), make(map[int]int)}
	for _, t := range sourceTables {
		if !s.Keyword(t.name) {
			continue
		}
		for c := s.Peek(); '0' <= c && c <= '9' && s.Err == nil; c = s.Peek() {
			id, text := s.Integer(), ""
			var names []string
			var numbers []int
			if s.Peek() == '"' {
				text = s.Quoted()
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
func (s *Scanner) namedNumbers() (names []string, numbers []int) {
	text := s.group()
	in := &Scanner{Src: text, Pos: 1, End: max(len(text)-1, 1)}
	for in.Peek() != 0 {
		name := in.Word("a name")
		in.Expect("=")
		if n := in.Integer(); in.Err == nil {
			names, numbers = append(names, name), append(numbers, n)
		}
	}
	return names, numbers
}

// Frame is the place of stack frame id; none where the tables do not say it.
func (p *Places) Frame(id int) ir.Pos {
	if p == nil {
		return ir.Pos{}
	}
	at := p.locations[p.frames[id]]
	if p.files[at.file] == "" || at.line < 1 {
		return ir.Pos{}
	}
	return ir.Pos{File: p.files[at.file], Line: at.line, Col: at.column}
}
