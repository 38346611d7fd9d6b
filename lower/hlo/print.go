package hlo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/ir/verify"
	"ppc/lower/hlo/syntax"
)

// Print returns m, a per-device program, as HLO text. The entry computation is
// m.Main(); functions that it does not reach are left out. It fails where an
// op has no HLO form, naming the first such op.
func Print(m *ir.Module) (string, error) {
	main := m.Main()
	if main == nil || main.Body == nil {
		return "", fmt.Errorf("module %s has no main function", ir.SymbolText(m.Name))
	}
	p := &printer{m: m, titles: newNamer(), funcs: make(map[string]string), reducers: make(map[string]string)}
	entry := p.function(main, p.titles.unique(main.Name))
	if p.err != nil {
		return "", p.err
	}
	return p.header(main) + "\n\n" + strings.Join(append(p.done, "ENTRY "+entry), "\n"), nil
}

// A printer writes the computations of one module.
type printer struct {
	m        *ir.Module
	titles   *namer            // names of computations
	done     []string          // finished computations, callees first
	funcs    map[string]string // computation of a function; "" while it is being printed
	reducers map[string]string // name of a region's computation, by its text
	err      error             // the first
}

func (p *printer) fail(op *ir.Op, format string, args ...any) {
	if p.err == nil {
		e := &verify.Error{Op: op, Rule: &ir.Rule{Label: "hlo", Msg: fmt.Sprintf(format, args...)}}
		p.err = e
	}
}

func (p *printer) header(main *ir.Func) string {
	var b strings.Builder
	name := p.m.Name
	if name == "" {
		name = "module"
	}
	b.WriteString("HloModule " + sanitise(name))
	b.WriteString(aliases(main))
	if !p.m.Attrs.Has("hlo.entry_computation_layout") {
		b.WriteString(", entry_computation_layout={(")
		for i, v := range main.Params() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeShape(&b, v.Type)
		}
		b.WriteString(")->")
		writeShape(&b, resultType(main))
		b.WriteByte('}')
	}
	if n := p.m.Attrs.Int("mhlo.num_replicas"); n > 1 {
		fmt.Fprintf(&b, ", replica_count=%d", n)
	}
	partitions := p.m.NumDevices()
	if p.m.Attrs.Has("mhlo.num_partitions") {
		partitions = p.m.Attrs.Int("mhlo.num_partitions")
	}
	if partitions > 1 {
		fmt.Fprintf(&b, ", num_partitions=%d", partitions)
	}
	b.WriteString(verbatim(p.m.Attrs, nil))
	return b.String()
}

// resultType is the type of what f returns.
func resultType(f *ir.Func) *ir.Type {
	ts := make([]*ir.Type, len(f.Results))
	for i, r := range f.Results {
		ts[i] = r.Type
	}
	return tupleOf(ts)
}

// verbatim are the attributes that were read from HLO and are carried through,
// those called hlo.NAME, of an instruction of type t or, where t is nil, the module. The layout
// of a result is no attribute in HLO; and what is said of each part of a tuple is left out where
// the tuple has other parts than it had.
func verbatim(as ir.Attrs, t *ir.Type) string {
	var b strings.Builder
	for _, a := range as {
		name, ok := strings.CutPrefix(a.Name, "hlo.")
		text, isText := a.Attr.(ir.Str)
		if ok && isText && name != "layout" && (t == nil || saysOf(name, string(text), t)) {
			b.WriteString(", " + name + "=" + string(text))
		}
	}
	return b.String()
}

// saysOf reports whether the text of an attribute is of a value of type t.
func saysOf(name, text string, t *ir.Type) bool {
	switch name {
	case "origin":
		return OriginFits(text, t)
	case "parameter_replication":
		said, err := syntax.Elements(text)
		return err == nil && len(said) == len(flatTypes(t, nil))
	}
	return true
}

// aliases says which result may take the memory of which parameter: the
// attribute tf.aliasing_output of a parameter is the number of the result. Those
// whose parts on a device differ in size do not.
func aliases(main *ir.Func) string {
	var pairs []string
	for i, v := range main.Params() {
		k, ok := v.Attrs.Get("tf.aliasing_output").(ir.Int)
		if !ok || k.Value < 0 || k.Value >= len(main.Results) {
			continue
		}
		if t := main.Results[k.Value].Type; !t.IsTensor() || !v.Type.IsTensor() || t.Bytes() != v.Type.Bytes() {
			continue
		}
		out := ""
		if len(main.Results) != 1 {
			out = strconv.Itoa(k.Value)
		}
		pairs = append(pairs, fmt.Sprintf("{%s}: (%d, {}, may-alias)", out, i))
	}
	if pairs == nil {
		return ""
	}
	return ", input_output_alias={ " + strings.Join(pairs, ", ") + " }"
}

// function is the text of f as the computation called name.
func (p *printer) function(f *ir.Func, name string) string {
	c := p.computation(f.Uses())
	for i, v := range f.Params() {
		if !printable(v.Type) && p.err == nil {
			p.err = &verify.Error{Func: f, Rule: &ir.Rule{Label: "hlo", Msg: fmt.Sprintf("parameter %d is %s, which has no shape in HLO", i, v.Type)}}
		}
		c.parameter(v, i)
	}
	c.block(f.Body)
	var root ir.Attrs
	if o := f.Attrs.Str("hlo.origin"); o != "" {
		root.Set("hlo.origin", ir.Str(o))
	}
	c.root(f.Return().Operands, root)
	return "%" + name + c.text()
}

// callee is the name of the computation of the function called name, which is
// printed first where it has not been.
func (p *printer) callee(op *ir.Op, name string) string {
	if s, ok := p.funcs[name]; ok {
		if s == "" {
			p.fail(op, "function %s calls itself", ir.SymbolText(name))
		}
		return s
	}
	f := p.m.Func(name)
	if f == nil || f.Body == nil || f.Return() == nil {
		p.fail(op, "there is no body of function %s", ir.SymbolText(name))
		return ""
	}
	p.funcs[name] = ""
	s := p.titles.unique(name)
	p.done = append(p.done, p.function(f, s))
	p.funcs[name] = s
	return s
}

// reducer is the name of the computation of a region that combines or compares
// scalars. Regions of equal text share one.
func (p *printer) reducer(region *ir.Block, uses []int) string {
	c := p.computation(uses)
	c.plain = true
	for i, v := range region.Args {
		c.parameter(v, i)
	}
	c.block(region)
	c.root(region.Terminator().Operands, nil)
	body := c.text()
	if name, ok := p.reducers[body]; ok {
		return name
	}
	want := "reducer"
	if op := region.Ops[0]; rowOf(op.Kind) != nil && len(region.Ops) == 2 && len(op.Operands) > 0 {
		want = rowOf(op.Kind).opcode + "_" + op.Operands[0].Type.Elem.HLO()
	}
	name := p.titles.unique(want)
	p.reducers[body] = name
	p.done = append(p.done, "%"+name+body)
	return name
}

// A namer gives out names, each once.
type namer struct {
	used map[string]bool
	next map[string]int // no smaller suffix is free
}

func newNamer() *namer { return &namer{make(map[string]bool), make(map[string]int)} }

// unique is want, made a name that HLO takes, or the first of want.1, want.2…
// that is free. A name that was given out before in the same place of the same
// text is given out again, so text that was printed and read prints the same.
func (n *namer) unique(want string) string {
	want = sanitise(want)
	name := want
	for n.used[name] {
		n.next[want]++
		name = want + "." + strconv.Itoa(n.next[want])
	}
	n.used[name] = true
	return name
}

// typeNames are the names of element types, which XLA takes for nothing else.
var typeNames = regexp.MustCompile(`^(pred|token|opaque|[su](1|2|4|8|16|32|64)|b?f16|f32|f64|c64|c128|f[48]e\w+)$`)

// sanitise replaces characters that an HLO name may not have by an underscore, and
// appends one to what is a type.
func sanitise(s string) string {
	letter := func(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	b := []byte(s)
	for i, c := range b {
		if !letter(c) && c != '.' && c != '-' && (c < '0' || c > '9') {
			b[i] = '_'
		}
	}
	if len(b) == 0 || !letter(b[0]) {
		b = append([]byte{'_'}, b...)
	}
	if typeNames.Match(b) {
		b = append(b, '_')
	}
	return string(b)
}
