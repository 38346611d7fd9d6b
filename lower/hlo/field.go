package hlo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ppc/ir"
	"ppc/lower"
	"ppc/lower/hlo/syntax"
)

// A field is one attribute of an instruction: its name, and how its value is
// represented in the attributes of the op. print returns "" where the field is left
// out; parse sets what print reads.
type field struct {
	name     string
	required bool
	print    func(m *ir.Module, op *ir.Op) (string, error)
	parse    func(m *ir.Module, text string, as *ir.Attrs) error
	absent   *ir.NamedAttr // what an op must have where no field sets it
}

// of is a field whose text needs only the op.
func of(name string, text func(op *ir.Op) string, parse func(text string, as *ir.Attrs) error) field {
	return field{name: name, print: func(_ *ir.Module, op *ir.Op) (string, error) { return text(op), nil },
		parse: func(_ *ir.Module, text string, as *ir.Attrs) error { return parse(text, as) }}
}

// must makes f required.
func must(f field) field {
	f.required = true
	return f
}

// absent is f with the value of an attribute that no field sets.
func absent(f field, attr string, a ir.Attr) field {
	f.absent = &ir.NamedAttr{Name: attr, Attr: a}
	return f
}

// ints is a list that is there even when it is empty.
func ints(name, attr string) field {
	return must(of(name, func(op *ir.Op) string { return braced(op.Ints(attr)) },
		func(text string, as *ir.Attrs) error {
			xs, err := syntax.ParseInts(text)
			as.Set(attr, ir.Ints(xs))
			return err
		}))
}

// single is a number in the form of a list of one.
func single(name, attr string) field {
	return must(of(name, func(op *ir.Op) string { return braced([]int{op.Int(attr)}) },
		func(text string, as *ir.Attrs) error {
			xs, err := syntax.ParseInts(text)
			if err == nil && len(xs) != 1 {
				err = fmt.Errorf("want one dimension, found %s", text)
			}
			if err == nil {
				as.Set(attr, ir.I64Attr(xs[0]))
			}
			return err
		}))
}

func number(name, attr string) field {
	return must(of(name, func(op *ir.Op) string { return strconv.Itoa(op.Int(attr)) },
		func(text string, as *ir.Attrs) error {
			n, err := syntax.ParseInt(text)
			as.Set(attr, ir.Int{Value: n, Type: ir.NumberType(attr)})
			return err
		}))
}

// flag is there only when it is true.
func flag(name, attr string) field { return mark(name, attr, ir.Bool(true)) }

// unit is a flag that an op has where HLO says true, without a value.
func unit(name string) field { return mark(name, name, ir.Unit{}) }

func mark(name, attr string, set ir.Attr) field {
	return of(name, func(op *ir.Op) string {
		if op.Bool(attr) {
			return "true"
		}
		return ""
	}, func(text string, as *ir.Attrs) error {
		switch text {
		case "true":
			as.Set(attr, set)
		case "false":
		default:
			return fmt.Errorf("want true or false, found %s", text)
		}
		return nil
	})
}

// yesNo is a flag that an op must have, and HLO has where it is true.
func yesNo(name string) field {
	f := absent(flag(name, name), name, ir.Bool(false))
	parse := f.parse
	f.parse = func(m *ir.Module, text string, as *ir.Attrs) error {
		if text == "false" {
			as.Set(name, ir.Bool(false))
		}
		return parse(m, text, as)
	}
	return f
}

// word is a word of one of StableHLO's sets.
func word(name, attr, set string, words ...string) field {
	return must(of(name, func(op *ir.Op) string { return op.Word(attr) },
		func(text string, as *ir.Attrs) error {
			if !slices.Contains(words, text) {
				return fmt.Errorf("want one of %s, found %s", strings.Join(words, ", "), text)
			}
			as.Set(attr, ir.HLOEnum(set, text))
			return nil
		}))
}

// str is a quoted string, left out where the attribute is not there.
func str(name, attr string) field {
	return of(name, func(op *ir.Op) string {
		if s, ok := op.Attrs.Get(attr).(ir.Str); ok {
			return quote(string(s))
		}
		return ""
	}, func(text string, as *ir.Attrs) error {
		s, err := syntax.Unquote(text)
		as.Set(attr, ir.Str(s))
		return err
	})
}

// part is a list within the attribute attr, a struct of type T; it is there even
// when it is empty.
func part[T ir.Attr](name, attr string, at func(*T) *[]int) field {
	return must(of(name, func(op *ir.Op) string {
		v, _ := op.Attrs.Get(attr).(T)
		return braced(*at(&v))
	}, func(text string, as *ir.Attrs) error {
		v, _ := as.Get(attr).(T)
		xs, err := syntax.ParseInts(text)
		*at(&v) = xs
		as.Set(attr, v)
		return err
	}))
}

// somePart is part that is left out when it is empty.
func somePart[T ir.Attr](name, attr string, at func(*T) *[]int) field {
	f := part(name, attr, at)
	f.required = false
	print := f.print
	f.print = func(m *ir.Module, op *ir.Op) (string, error) {
		if v, _ := op.Attrs.Get(attr).(T); len(*at(&v)) == 0 {
			return "", nil
		}
		return print(m, op)
	}
	return f
}

// partNumber is a number within the attribute attr, a struct of type T.
func partNumber[T ir.Attr](name, attr string, at func(*T) *int) field {
	return must(of(name, func(op *ir.Op) string {
		v, _ := op.Attrs.Get(attr).(T)
		return strconv.Itoa(*at(&v))
	}, func(text string, as *ir.Attrs) error {
		v, _ := as.Get(attr).(T)
		n, err := syntax.ParseInt(text)
		*at(&v) = n
		as.Set(attr, v)
		return err
	}))
}

// compareType is the type of a comparison, printed where it does not follow
// from the operands.
func compareType() field {
	f := word("type", "compare_type", "comparison_type", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
	f.required = false
	print, parse := f.print, f.parse
	f.print = func(m *ir.Module, op *ir.Op) (string, error) {
		if op.Word("compare_type") != "TOTALORDER" {
			return "", nil
		}
		return print(m, op)
	}
	f.parse = func(m *ir.Module, text string, as *ir.Attrs) error { return cmp.Or(typedOnce(as), parse(m, text, as)) }
	return f
}

// compareOrder is what newer versions of XLA have in the place of a type: by
// which order of the numbers they are compared. Every version reads a type, so
// that is what is printed.
func compareOrder() field {
	types := map[string]string{"TOTAL": "TOTALORDER", "PARTIAL": "FLOAT"}
	return of("order", func(*ir.Op) string { return "" }, func(text string, as *ir.Attrs) error {
		switch {
		case text == "WEAK":
			return syntax.ErrBeyond
		case types[text] == "":
			return fmt.Errorf("want one of PARTIAL, WEAK, TOTAL, found %s", text)
		}
		err := typedOnce(as)
		as.Set("compare_type", ir.HLOEnum("comparison_type", types[text]))
		return err
	})
}

func typedOnce(as *ir.Attrs) error {
	if as.Has("compare_type") {
		return errors.New("a comparison has a type or an order, not both")
	}
	return nil
}

// orderFits drops the order of what is no floating-point number: there is one
// only, whatever its name.
func orderFits(as *ir.Attrs, operands []*ir.Value) bool {
	t := operands[0].Type
	if w := as.Word("compare_type"); t.IsTensor() && !t.Elem.IsFloat() && (w == "TOTALORDER" || w == "FLOAT" && !t.Elem.IsComplex()) {
		as.Delete("compare_type")
	}
	return true
}

// padding is low_high_interior of each dimension, joined by x.
func padding() field {
	return must(of("padding", func(op *ir.Op) string {
		low, high, interior := op.Ints("edge_padding_low"), op.Ints("edge_padding_high"), op.Ints("interior_padding")
		dims := make([]string, len(low))
		for d := range dims {
			dims[d] = fmt.Sprintf("%d_%d", low[d], high[d])
			if interior[d] != 0 {
				dims[d] += fmt.Sprintf("_%d", interior[d])
			}
		}
		return strings.Join(dims, "x")
	}, func(text string, as *ir.Attrs) error {
		var amounts [3][]int // low, high, interior
		for _, dim := range strings.Split(text, "x") {
			xs, err := syntax.ParseList(dim, "_")
			if err == nil && len(xs) != 2 && len(xs) != 3 {
				err = fmt.Errorf("want low_high or low_high_interior, found %s", dim)
			}
			if err != nil {
				return err
			}
			xs = append(xs, 0)
			for i := range amounts {
				amounts[i] = append(amounts[i], xs[i])
			}
		}
		for i, name := range []string{"edge_padding_low", "edge_padding_high", "interior_padding"} {
			as.Set(name, ir.Ints(amounts[i]))
		}
		return nil
	}))
}

// slice is the range of each dimension: {[0:4], [1:7:2]}.
func slice() field {
	return must(of("slice", func(op *ir.Op) string {
		start, limit, strides := op.Ints("start_indices"), op.Ints("limit_indices"), op.Ints("strides")
		dims := make([]string, len(start))
		for d := range dims {
			dims[d] = fmt.Sprintf("[%d:%d]", start[d], limit[d])
			if strides[d] != 1 {
				dims[d] = fmt.Sprintf("[%d:%d:%d]", start[d], limit[d], strides[d])
			}
		}
		return "{" + strings.Join(dims, ", ") + "}"
	}, func(text string, as *ir.Attrs) error {
		start, limit, strides := []int{}, []int{}, []int{}
		parts, err := syntax.Elements(text)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if !strings.HasPrefix(p, "[") {
				return fmt.Errorf("want [start:limit], found %s", p)
			}
			xs, err := syntax.ParseList(p[1:len(p)-1], ":")
			if err == nil && len(xs) != 2 && len(xs) != 3 {
				err = fmt.Errorf("want [start:limit] or [start:limit:stride], found %s", p)
			}
			if err != nil {
				return err
			}
			xs = append(xs, 1)
			start, limit, strides = append(start, xs[0]), append(limit, xs[1]), append(strides, xs[2])
		}
		as.Set("start_indices", ir.Ints(start))
		as.Set("limit_indices", ir.Ints(limit))
		as.Set("strides", ir.Ints(strides))
		return nil
	}))
}

// sortDimension counts a negative dimension from the end, as StableHLO does.
func sortDimension() field {
	f := single("dimensions", "dimension")
	f.print = func(_ *ir.Module, op *ir.Op) (string, error) {
		d := op.Int("dimension")
		if d < 0 {
			d += op.Operands[0].Type.Rank()
		}
		return braced([]int{d}), nil
	}
	return f
}

// precision is the precision of each operand where one is not the default.
func precision() field {
	return of("operand_precision", func(op *ir.Op) string {
		list, _ := op.Attrs.Get("precision_config").(ir.Array)
		words := make([]string, len(list))
		special := false
		for i, a := range list {
			e, _ := a.(ir.Enum)
			words[i] = strings.ToLower(e.Value)
			special = special || e.Value != "DEFAULT"
		}
		if !special {
			return ""
		}
		return "{" + strings.Join(words, ",") + "}"
	}, func(text string, as *ir.Attrs) error {
		words, err := syntax.Elements(text)
		if err != nil {
			return err
		}
		list := make(ir.Array, len(words))
		for i, w := range words {
			if !slices.Contains([]string{"default", "high", "highest"}, w) {
				return syntax.ErrBeyond
			}
			list[i] = ir.HLOEnum("precision", strings.ToUpper(w))
		}
		as.Set("precision_config", list)
		return nil
	})
}

// apiVersion is how the target of a custom call is called.
func apiVersion() field {
	names := []string{1: "API_VERSION_ORIGINAL", 2: "API_VERSION_STATUS_RETURNING", 3: "API_VERSION_STATUS_RETURNING_UNIFIED", 4: "API_VERSION_TYPED_FFI"}
	return of("api_version", func(op *ir.Op) string {
		if v := op.Int("api_version"); v > 1 && v < len(names) {
			return names[v]
		}
		return ""
	}, func(text string, as *ir.Attrs) error {
		i := slices.Index(names, text)
		if i < 1 {
			return fmt.Errorf("want one of %s, found %s", strings.Join(names[1:], ", "), text)
		}
		as.Set("api_version", ir.Int{Value: i, Type: ir.I32})
		return nil
	})
}

// backendConfig is what the target of a custom call is told: a string here.
func backendConfig() field {
	f := str("backend_config", "backend_config")
	parse := f.parse
	f.parse = func(m *ir.Module, text string, as *ir.Attrs) error {
		if text[0] != '"' {
			return syntax.ErrBeyond
		}
		return parse(m, text, as)
	}
	return f
}

// frontend is what XLA's passes are told of an op: {name="text",...}.
func frontend() field {
	const attr = "mhlo.frontend_attributes"
	return of("frontend_attributes", func(op *ir.Op) string {
		d, _ := op.Attrs.Get(attr).(ir.Dict)
		var parts []string
		for _, a := range d {
			if s, ok := a.Attr.(ir.Str); ok {
				parts = append(parts, a.Name+"="+quote(string(s)))
			}
		}
		if parts == nil {
			return ""
		}
		return "{" + strings.Join(parts, ",") + "}"
	}, func(text string, as *ir.Attrs) error {
		var d ir.Attrs
		rest := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
		for rest != "" {
			name, after, ok := strings.Cut(rest, "=")
			end := quoteEnd(after)
			if !ok || end == 0 {
				return syntax.ErrBeyond
			}
			s, err := syntax.Unquote(after[:end])
			if err != nil {
				return err
			}
			d.Set(strings.TrimSpace(name), ir.Str(s))
			rest = strings.TrimLeft(after[end:], ", ")
		}
		as.Set(attr, ir.Dict(d))
		return nil
	})
}

// quoteEnd is where the quoted string ends that s begins with, 0 if it does not.
func quoteEnd(s string) int {
	if !strings.HasPrefix(s, `"`) {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// channelID is there where devices, and not replicas, communicate.
func channelID() field {
	return of("channel_id", func(op *ir.Op) string {
		if ch, ok := op.Attrs.Get("channel_handle").(ir.Channel); ok && ch.Handle > 0 {
			return strconv.Itoa(ch.Handle)
		}
		return ""
	}, func(text string, as *ir.Attrs) error {
		n, err := syntax.ParseInt(text)
		as.Set("channel_handle", ir.Channel{Handle: n, Type: 1})
		return err
	})
}

// groups is the replica groups, see groups.go.
func groups() field {
	none := &ir.Literal{Type: ir.Tensor(ir.I64, 0, 0)} // one group of all devices
	return absent(field{name: "replica_groups", print: func(m *ir.Module, op *ir.Op) (string, error) {
		switch g := op.Attrs.Get("replica_groups").(type) {
		case *ir.Literal:
			return ListsText(Rows(g)), nil
		case ir.MeshAxes:
			mesh, err := lower.MeshOf(m, g.Mesh, g.Axes...)
			if err != nil {
				return "", err
			}
			return groupsText(mesh, g.Axes), nil
		}
		return "", errors.New("replica_groups are missing")
	}, parse: func(m *ir.Module, text string, as *ir.Attrs) error {
		g, err := parseGroups(m, text)
		if g != nil {
			as.Set("replica_groups", g)
		}
		return err
	}}, "replica_groups", none)
}

func pairs() field {
	return must(field{name: "source_target_pairs", print: func(m *ir.Module, op *ir.Op) (string, error) {
		switch p := op.Attrs.Get("source_target_pairs").(type) {
		case *ir.Literal:
			return ListsText(Rows(p)), nil
		case ir.AxisShift:
			mesh, err := lower.MeshOf(m, p.Mesh, p.Axes...)
			if err != nil {
				return "", err
			}
			return ListsText(lower.Pairs(mesh, p)), nil
		case ir.AxisMove:
			mesh, err := lower.MeshOf(m, p.Mesh, p.From...)
			if err != nil {
				return "", err
			}
			return ListsText(lower.MovePairs(mesh, p)), nil
		}
		return "", errors.New("source_target_pairs are missing")
	}, parse: func(_ *ir.Module, text string, as *ir.Attrs) error {
		lists, err := syntax.ParseLists(text)
		if err != nil {
			return err
		}
		for _, l := range lists {
			if len(l) != 2 {
				return fmt.Errorf("want pairs, found %s", text)
			}
		}
		as.Set("source_target_pairs", lower.Dense(lists, 2))
		return nil
	}})
}

// rngAlgorithm is how random bits are generated: rng_three_fry.
func rngAlgorithm() field {
	const attr, prefix = "rng_algorithm", "rng_"
	return must(of("algorithm", func(op *ir.Op) string { return prefix + strings.ToLower(op.Word(attr)) },
		func(text string, as *ir.Attrs) error {
			word, ok := strings.CutPrefix(text, prefix)
			if !ok || !slices.Contains([]string{"default", "three_fry", "philox"}, word) {
				return fmt.Errorf("want rng_default, rng_three_fry or rng_philox, found %s", text)
			}
			as.Set(attr, ir.HLOEnum(attr, strings.ToUpper(word)))
			return nil
		}))
}
