package hlo

import (
	"errors"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// commonAttrs are attributes that any instruction may have and that say
// nothing of what it computes. They are kept as text.
var commonAttrs = map[string]bool{"backend_config": true, "constrain_layout": true, "debug_log_mode": true, "frontend_attributes": true, "mode": true, "origin": true,
	"parameter_replication": true, "result_accuracy": true, "sharding": true, "statistics": true}

// instructionAttrs are all attributes that instructions have.
var instructionAttrs = func() map[string]bool {
	m := map[string]bool{"algorithm": true, "api_version": true, "async_execution_thread": true, "batch_group_count": true, "called_computations": true,
		"cholesky": true, "composite": true, "control-predecessors": true, "cross_program_prefetch_index": true, "custom_call_schedule": true, "delta": true, "dim_labels": true,
		"distribution": true, "domain": true, "epsilon": true, "exit": true, "feature_group_count": true, "feature_index": true, "fft_length": true, "fft_type": true,
		"has_dynamic_root": true, "infeed_config": true, "is_associative": true, "is_composite": true, "is_cross_program_prefetch": true, "is_host_transfer": true, "is_reverse": true, "is_vectorized": true,
		"k": true, "kind": true, "largest": true, "left_side": true, "lhs_ragged_dims": true, "lower": true, "metadata": true, "num_carries": true, "operand_layout_constraints": true, "outfeed_config": true, "outfeed_shape": true,
		"output_to_operand_aliasing": true, "padding_type": true, "rhs_group_dims": true, "rng_algorithm": true, "schedule": true, "slice_sizes": true, "sparsity_config": true, "literal": true, "split_dimension": true,
		"transpose_a": true, "unit_diagonal": true, "window": true}
	for name := range commonAttrs {
		m[name] = true
	}
	for name := range syntax.ComputationAttrs {
		m[name] = true
	}
	for _, row := range table {
		for _, f := range row.fields {
			m[f.name] = true
		}
	}
	for _, g := range grammars {
		for _, name := range strings.Fields(g.attrs) {
			m[strings.TrimSuffix(name, "!")] = true
		}
	}
	return m
}()

// instructionAttrNames are instructionAttrs in order, for spelling hints.
func instructionAttrNames() []string {
	names := make([]string, 0, len(instructionAttrs))
	for name := range instructionAttrs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// attrs reads the attributes of in that row has, and keeps the common ones.
// extra reports one that is neither, or a value that has no form in StableHLO.
func (b *body) attrs(in *syntax.Instruction, row *row) (as ir.Attrs, extra bool) {
	seen := make(map[string]bool)
	for _, a := range in.Attrs {
		if seen[a.Name] {
			b.FailAt(a.At, "attribute %s is given twice", a.Name)
		}
		seen[a.Name] = true
		f := row.field(a.Name)
		switch {
		case f == nil && !commonAttrs[a.Name]:
			extra = extra || !structural(a.Name) || row != nil && syntax.ComputationAttrs[a.Name] && !slices.Contains(row.calls, a.Name)
			continue
		case f == nil:
			continue // kept below
		}
		err := f.parse(b.m, a.Text, &as)
		if errors.Is(err, syntax.ErrBeyond) {
			extra = true
		} else if err != nil {
			b.FailAt(a.At, "%s: %v", a.Name, err)
		}
	}
	if row != nil {
		for _, f := range row.fields {
			if f.required && !seen[f.name] && !optionalHere(in, f.name) {
				b.FailAt(in.OpAt, "%s has no %s", in.Opcode, f.name)
			}
		}
		row.complete(&as)
	}
	b.common(in, row, &as)
	return as, extra
}

// structural reports whether an attribute is read where its op is built.
func structural(name string) bool {
	switch name {
	case "metadata", "control-predecessors", "to_apply", "select", "scatter", "condition", "body", "true_computation", "false_computation", "branch_computations":
		return true
	}
	return false
}

// optionalHere reports whether a required attribute may be left out: the
// dimensions of a scalar's broadcast, and of an all-to-all that has an operand
// for each device.
func optionalHere(in *syntax.Instruction, name string) bool {
	return name == "dimensions" && (in.Opcode == "broadcast" || in.Opcode == "all-to-all")
}

// common keeps the common attributes of in, those aside that row has, as text.
func (p *parser) common(in *syntax.Instruction, row *row, as *ir.Attrs) {
	for _, a := range in.Attrs {
		if commonAttrs[a.Name] && row.field(a.Name) == nil {
			p.check(in, a)
			as.Set("hlo."+a.Name, ir.Str(a.Text))
		}
	}
}

// OriginFits reports whether text, which says what an earlier module called a value, has a name
// for each tensor of one of type t, or none: {{"a"}} of a tensor, {({"a"}, {"b"})} of a tuple of two.
func OriginFits(text string, t *ir.Type) bool {
	if strings.Contains(text, "synthetic_call") {
		return true
	}
	s := &syntax.Scanner{Src: text, End: len(text)}
	s.Expect("{")
	return namesLike(s, t) || s.Err != nil
}

// namesLike reports whether the tree of names that s is before has the form of t.
func namesLike(s *syntax.Scanner, t *ir.Type) bool {
	if t.Kind != ir.TupleType {
		return s.Peek() != '('
	}
	if !s.Accept("(") {
		return false
	}
	for i, e := range t.Elems {
		if i > 0 && !s.Accept(",") || !namesLike(s, e) {
			return false
		}
		if e.Kind != ir.TupleType {
			s.Value()
		}
	}
	return s.Accept(")")
}

// origin is the position of in and the source position in its metadata.
func (p *parser) origin(in *syntax.Instruction) *ir.Origin {
	o := new(ir.Origin)
	for _, a := range in.Attrs {
		if a.Name != "metadata" {
			continue
		}
		s := &syntax.Scanner{Src: a.Text, End: len(a.Text)}
		s.Expect("{")
		for s.Err == nil && !s.Accept("}") {
			s.Accept(",")
			name := s.Word("a name")
			s.Expect("=")
			p.setOrigin(o, name, s.Value())
		}
		if s.Err != nil {
			o = new(ir.Origin)
		}
		break
	}
	o.Text = p.pos(in.At)
	return o
}

func (p *parser) pos(at int) *ir.Pos {
	line, col := p.Place(at)
	return &ir.Pos{File: p.File, Line: line, Col: col}
}

func (p *parser) setOrigin(o *ir.Origin, name, value string) {
	text, _ := syntax.Unquote(value)
	switch name {
	case "op_name":
		layer, name := "", text
		if i := strings.LastIndexByte(text, '/'); i >= 0 {
			layer, name = text[:i], text[i+1:]
		}
		*o = *o.Saying(ir.Said{Name: name, Layer: layer})
	case "source_file":
		o.Pos.File = text
	case "source_line":
		o.Pos.Line, _ = syntax.ParseInt(value)
	case "stack_frame_id":
		if id, err := syntax.ParseInt(value); err == nil && o.Pos == (ir.Pos{}) {
			o.Pos = p.places.Frame(id)
		}
	}
}
