package syntax

import "ppc/ir"

// Places are the tables of a module that say where in the sources its
// instructions come from: a stack frame is a location, which is a line of a
// file. Each is by number.
type Places struct {
	files     map[int]string
	locations map[int]sourceLocation
	frames    map[int]int // the location of each
}

type sourceLocation struct{ file, line, column int }

// sourceTables are the tables of source locations, in order, and what an entry of each, a text
// or named numbers, adds.
var sourceTables = []struct {
	name   string
	fields []string // none if an entry is a text
	add    func(p *Places, id int, text string, field map[string]int)
}{
	{"FileNames", nil, func(p *Places, id int, text string, _ map[string]int) { p.files[id] = text }},
	{"FunctionNames", nil, func(*Places, int, string, map[string]int) {}},
	{"FileLocations", []string{"file_name_id", "function_name_id", "line", "end_line", "column", "end_column"}, func(p *Places, id int, _ string, field map[string]int) {
		p.locations[id] = sourceLocation{field["file_name_id"], field["line"], field["column"]}
	}},
	{"StackFrames", []string{"file_location_id", "parent_frame_id"}, func(p *Places, id int, _ string, field map[string]int) {
		p.frames[id] = field["file_location_id"]
	}},
}

// sourcePlaces reads the tables of source locations: all of them, or none.
func (s *Scanner) sourcePlaces() *Places {
	p := &Places{make(map[int]string), make(map[int]sourceLocation), make(map[int]int)}
	for i, t := range sourceTables {
		if !s.Keyword(t.name) {
			if i > 0 {
				s.Fail("want %s, found %s", t.name, s.Next())
			}
			return p
		}
		for c := s.Peek(); '0' <= c && c <= '9' && s.Err == nil; c = s.Peek() {
			id := s.Integer()
			if t.fields == nil {
				t.add(p, id, s.Quoted(), nil)
			} else {
				t.add(p, id, "", s.namedNumbers(t.fields))
			}
		}
	}
	return p
}

// namedNumbers reads {line=3 column=4}, with all of these names.
func (s *Scanner) namedNumbers(names []string) map[string]int {
	numbers := make(map[string]int)
	known := make(map[string]value)
	for _, name := range names {
		known[name+"!"] = func(s *Scanner) { numbers[name] = s.Integer() }
	}
	fields(known)(s)
	return numbers
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
