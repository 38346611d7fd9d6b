package syntax

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ppc/internal/spell"
)

// A value reads the value of an attribute, of which nothing is kept.
type value func(s *Scanner)

// CheckValue reports what is wrong with the value of the attribute called name, as far as
// its text says. An attribute without a grammar here has none, or one that needs a type.
func CheckValue(name, text string) error {
	v := values[name]
	if v == nil {
		return nil
	}
	s := &Scanner{Src: text, End: len(text)}
	if v(s); s.Err == nil && s.Peek() != 0 {
		s.Fail("found %s after the value", s.Next())
	}
	if s.Err != nil {
		return errors.New(s.Err.Msg)
	}
	return nil
}

// values are the grammars of the values of attributes, of modules, computations and
// instructions; it is filled below, since shardings and origins refer to one another.
var values map[string]value

func init() {
	number, flag, numbers, text := value((*Scanner).int64), value((*Scanner).boolean), value((*Scanner).int64s), value((*Scanner).text)
	flags := list("{", flag, "}")
	dotAlgorithm := among("unset", "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_any_f8_any_f8_any", "dot_any_f8_any_f8_any_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
		"dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_bf16_bf16_f32_x9", "dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64")
	values = map[string]value{
		"convolution.algorithm": dotAlgorithm, "dot.algorithm": dotAlgorithm, "scaled-dot.algorithm": dotAlgorithm,
		"rng-bit-generator.algorithm":                   among("rng_default", "rng_three_fry", "rng_philox"),
		"alias_passthrough_params":                      flag,
		"allow_spmd_sharding_propagation_to_output":     flagOrFlags(flags),
		"allow_spmd_sharding_propagation_to_parameters": flagOrFlags(flags),
		"api_version":                          among("API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"),
		"async_execution_thread":               text,
		"backend_config":                       textOrJSON,
		"batch_group_count":                    number,
		"buffer_donor":                         trailing("{", donor, "}"),
		"channel_id":                           number,
		"collapsed_slice_dims":                 numbers,
		"collective-permute.slice_sizes":       list("{", numbers, "}"),
		"collective-permute-start.slice_sizes": list("{", numbers, "}"),
		"constrain_layout":                     flag,
		"convolution_kind":                     among("fprop", "wgrad", "dgrad", "unset"),
		"cross_program_prefetch_index":         (*Scanner).int32,
		"custom_call_has_side_effect":          flag,
		"custom_call_target":                   text,
		"debug_attributes":                     debugAttributes,
		"delta":                                number,
		"dimensions":                           numbers,
		"direction":                            word,
		"distribution":                         among("rng_uniform", "rng_normal"),
		"domain":                               domain,
		"dynamic_slice_sizes":                  numbers,
		"entry_computation_layout":             entryLayout,
		"epsilon":                              (*Scanner).float32,
		"execution_thread":                     text,
		"exponent_bits":                        number,
		"feature_group_count":                  number,
		"feature_index":                        number,
		"fft_length":                           numbers,
		"fft_type":                             word,
		"frontend_attributes":                  frontend,
		"has_dynamic_root":                     flag,
		"index":                                number,
		"index_vector_dim":                     number,
		"indices_are_sorted":                   flag,
		"infeed_config":                        text,
		"inferred_dimension":                   number,
		"input_batching_dims":                  numbers,
		"input_output_alias":                   trailing("{", moduleAlias, "}"),
		"inserted_window_dims":                 numbers,
		"iota_dimension":                       number,
		"is_associative":                       flag,
		"is_composite":                         flag,
		"is_host_transfer":                     flag,
		"is_reverse":                           flag,
		"is_scheduled":                         flag,
		"is_stable":                            flag,
		"k":                                    number,
		"kind":                                 among("kLoop", "kInput", "kOutput", "kCustom"),
		"largest":                              flag,
		"left_side":                            flag,
		"lhs_batch_dims":                       numbers,
		"lhs_contracting_dims":                 numbers,
		"lhs_ragged_dims":                      numbers,
		"literal":                              literal,
		"lower":                                flag,
		"mantissa_bits":                        number,
		"metadata":                             metadata,
		"mode":                                 among("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id"),
		"num_carries":                          number,
		"num_partitions":                       number,
		"offset_dims":                          numbers,
		"operand_batching_dims":                numbers,
		"operand_precision":                    list("{", precision, "}"),
		"order":                                word,
		"origin":                               origin,
		"origin_recovery_table":                recoveryTable,
		"outfeed_config":                       text,
		"outfeed_shape":                        shape,
		"output_to_operand_aliasing":           trailing("{", alias, "}"),
		"padding":                              padEdges,
		"padding_type":                         among("PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"),
		"parameter_replication":                flags,
		"replica_count":                        number,
		"result_accuracy":                      accuracy,
		"rhs_batch_dims":                       numbers,
		"rhs_contracting_dims":                 numbers,
		"rhs_group_dims":                       numbers,
		"scatter_dims_to_operand_dims":         numbers,
		"scatter_indices_batching_dims":        numbers,
		"schedule":                             among("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
		"sharding":                             sharding,
		"slice":                                sliceRanges,
		"source_target_pairs":                  list("{", numbers, "}"),
		"sparsity_config":                      sparsity,
		"start_index_map":                      numbers,
		"start_indices_batching_dims":          numbers,
		"statistics":                           statistics,
		"transpose_a":                          word,
		"type":                                 word,
		"unique_indices":                       flag,
		"unit_diagonal":                        flag,
		"update_window_dims":                   numbers,
		"use_global_device_ids":                flag,
		"window":                               window,
	}
}

// list is items with commas between them; it may have none.
func list(open string, item value, end string) value {
	return func(s *Scanner) {
		if s.Expect(open); s.Accept(end) {
			return
		}
		for item(s); s.Err == nil && s.Accept(","); {
			item(s)
		}
		s.Expect(end)
	}
}

// trailing is a list that may have a comma behind its last item.
func trailing(open string, item value, end string) value {
	return func(s *Scanner) {
		for s.Expect(open); s.Err == nil && !s.Accept(end); {
			if item(s); !s.Accept(",") {
				s.Expect(end)
				return
			}
		}
	}
}

// fields is named values in braces, each at most once, with commas or white space between
// them. The names with an exclamation mark are required.
func fields(known map[string]value) value {
	return func(s *Scanner) {
		start := s.Pos
		seen := make(map[string]bool)
		for s.Expect("{"); s.Err == nil && !s.Accept("}"); {
			s.Accept(",")
			at := s.Pos
			name := s.attrName()
			v := known[name]
			if v == nil {
				v = known[name+"!"]
			}
			switch {
			case s.Err != nil:
			case v == nil:
				s.FailAt(at, "%s is none of its names%s", name, Hint(name, namesOf(known)))
			case seen[name]:
				s.FailAt(at, "%s is given twice", name)
			default:
				v(s)
			}
			seen[name] = true
		}
		for name := range known {
			if name, required := strings.CutSuffix(name, "!"); required && !seen[name] {
				s.FailAt(start, "there is no %s", name)
			}
		}
	}
}

func namesOf(known map[string]value) []string {
	var names []string
	for name := range known {
		names = append(names, strings.TrimSuffix(name, "!"))
	}
	slices.Sort(names)
	return names
}

// Hint says which of the words that there are somebody may have meant by another.
func Hint(word string, among []string) string {
	if near := spell.Nearest(word, among); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// among is one of words.
func among(words ...string) value {
	return func(s *Scanner) {
		s.Space()
		at := s.Pos
		if w := s.Word("one of " + strings.Join(words, ", ")); s.Err == nil && !slices.Contains(words, w) {
			s.FailAt(at, "want one of %s, found %s%s", strings.Join(words, ", "), w, Hint(w, words))
		}
	}
}

func word(s *Scanner) { s.Word("a word") }

// precision is a word, in upper or lower case.
func precision(s *Scanner) {
	s.Space()
	at := s.Pos
	words := []string{"default", "high", "highest"}
	if w := s.Word("a precision"); s.Err == nil && !slices.Contains(words, strings.ToLower(w)) {
		s.FailAt(at, "want one of %s, found %s", strings.Join(words, ", "), w)
	}
}

// accuracy is {mode=highest} or {tolerance={rtol=0.5,ulps=2}}.
func accuracy(s *Scanner) {
	s.Expect("{")
	s.Space()
	at := s.Pos
	switch name := s.attrName(); name {
	case "mode":
		precision(s)
	case "tolerance":
		list("{", func(s *Scanner) {
			s.Space()
			if at, name := s.Pos, s.attrName(); !slices.Contains([]string{"atol", "rtol", "ulps"}, name) {
				s.FailAt(at, "%s is none of atol, rtol and ulps", name)
			}
			if at, text := s.Pos, s.numberText(); strings.HasPrefix(text, "-") {
				s.FailAt(at, "%s is negative", text)
			}
		}, "}")(s)
	default:
		s.FailAt(at, "%s is neither mode=default, mode=highest nor tolerance={…}", name)
	}
	s.Expect("}")
}

func (s *Scanner) boolean() {
	among("true", "false")(s)
}

func flagOrFlags(flags value) value {
	return func(s *Scanner) {
		if s.Peek() == '{' {
			flags(s)
			return
		}
		s.boolean()
	}
}

// int64 reads a signed number of 64 bits, or an unsigned one, whose bits are meant.
func (s *Scanner) int64() {
	w := s.lookWord()
	_, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		_, err = strconv.ParseUint(w, 10, 64)
	}
	if err != nil {
		s.Fail("want an integer, found %s", s.Next())
		return
	}
	s.Pos += len(w)
}

func (s *Scanner) int64s() { list("{", (*Scanner).int64, "}")(s) }

func (s *Scanner) int32() {
	w := s.lookWord()
	if _, err := strconv.ParseInt(w, 10, 32); err != nil {
		s.Fail("want an integer of 32 bits, found %s", s.Next())
		return
	}
	s.Pos += len(w)
}

// decimal is a number as HLO writes it: 1, -2.5, 1e-3.
var decimal = regexp.MustCompile(`^(?:-?[0-9]+\.?[0-9]*|-\.[0-9]+)(?:[eE][-+]?[0-9]+)?`)

// numberText skips a decimal number, inf or nan.
func (s *Scanner) numberText() string {
	s.Space()
	w := decimal.FindString(s.Src[s.Pos:s.End])
	if w == "" {
		if w = s.lookWord(); !slices.Contains([]string{"inf", "-inf", "nan", "-nan"}, w) {
			s.Fail("want a number, found %s", s.Next())
			return ""
		}
	}
	s.Pos += len(w)
	return w
}

func (s *Scanner) float32() {
	at := s.Pos
	text := s.numberText()
	if v, err := strconv.ParseFloat(text, 64); s.Err == nil && (err != nil || !math.IsNaN(v) && math.Abs(v) > math.MaxFloat32) {
		s.FailAt(at, "%s is no number of type f32", text)
	}
}

func (s *Scanner) text() {
	if c := s.Peek(); c != '"' && c != '\'' {
		s.Fail("want a string, found %s", s.Next())
		return
	}
	start := s.Pos
	if s.str(); s.Err == nil {
		if bad := badEscape.FindString(s.Src[start:s.Pos]); bad != "" {
			s.FailAt(start, "%s is no escape in a string", bad[len(bad)-2:])
		}
	}
}

// badEscape finds a backslash before what C has no escape for.
var badEscape = regexp.MustCompile(`^(?:[^\\]|\\[0-7abfnrtvxuU?'"\\])*\\[^0-7abfnrtvxuU?'"\\]`)

// textOrJSON is a string, or a dictionary of JSON, of which only braces and strings count.
func textOrJSON(s *Scanner) {
	if s.Peek() != '{' {
		s.text()
		return
	}
	start, depth := s.Pos, 0
	for s.Err == nil && s.Pos < s.End {
		switch s.Src[s.Pos] {
		case '"':
			s.str()
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		if s.Pos++; depth == 0 {
			return
		}
	}
	s.FailAt(start, "%q is not closed", "{")
}

// frontend is {name="text",other={"key":1}}.
func frontend(s *Scanner) {
	list("{", func(s *Scanner) {
		s.attrName()
		textOrJSON(s)
	}, "}")(s)
}

// statistics is {visualizing_index=0,name=1.5}.
func statistics(s *Scanner) {
	first := true
	list("{", func(s *Scanner) {
		if s.attrName(); first {
			s.int64()
		} else {
			s.numberText()
		}
		first = false
	}, "}")(s)
}

// profileTypes is how many kinds of profile there are.
const profileTypes = 4

var metadataFields = map[string]value{
	"deduplicated_name": (*Scanner).text, "metadata_payload": (*Scanner).text, "op_name": (*Scanner).text, "op_type": (*Scanner).text, "scheduling_name": (*Scanner).text, "source_file": (*Scanner).text,
	"source_column": (*Scanner).int32, "source_end_column": (*Scanner).int32, "source_end_line": (*Scanner).int32, "source_line": (*Scanner).int32, "stack_frame_id": (*Scanner).int32,
	"profile_type": func(s *Scanner) {
		at := s.Pos
		for _, n := range s.Ints("{", "}") {
			if n < 0 || n >= profileTypes {
				s.FailAt(at, "%d is no type of profile: want 0 to %d", n, profileTypes-1)
			}
		}
	},
}

func metadata(s *Scanner) { fields(metadataFields)(s) }

// metadataList is one metadata, or several: {{…} {…}} has a comma between them.
func metadataList(s *Scanner) {
	if rest := strings.TrimSpace(strings.TrimPrefix(s.Src[s.Pos:s.End], "{")); s.Peek() == '{' && strings.HasPrefix(rest, "{") {
		list("{", metadata, "}")(s)
		return
	}
	metadata(s)
}

// index is the place of a value in nested tuples: {1,0}.
func index(s *Scanner) { trailing("{", (*Scanner).int64, "}")(s) }

// alias is {0}: (1, {}), which part of an operand a part of a result shares memory with.
func alias(s *Scanner) {
	index(s)
	s.Expect(":")
	s.Expect("(")
	s.int64()
	s.Expect(",")
	index(s)
	s.Expect(")")
}

// moduleAlias is an alias of a module, which says of what kind it is.
func moduleAlias(s *Scanner) {
	index(s)
	s.Expect(":")
	s.Expect("(")
	s.int64()
	s.Expect(",")
	if index(s); s.Accept(",") {
		among("may-alias", "must-alias")(s)
	}
	s.Expect(")")
}

func donor(s *Scanner) {
	s.Expect("(")
	s.int64()
	s.Expect(",")
	index(s)
	s.Expect(")")
}

func shape(s *Scanner) { s.Shape() }

func entryLayout(s *Scanner) {
	s.Expect("{")
	trailing("(", shape, ")")(s)
	s.Expect("->")
	shape(s)
	s.Expect("}")
}

// literal is a shape and the numbers of a constant of that shape, or a tuple of such.
func literal(s *Scanner) {
	if s.Peek() == '(' {
		trailing("(", literal, ")")(s)
		return
	}
	h := s.Shape()
	if s.Err != nil || !h.Type.IsTensor() || !h.Type.IsStatic() {
		s.Fail("want the shape of a constant")
		return
	}
	s.literalOf(h.Type)
}

func (s *Scanner) numberOrWord() {
	if s.lookWord() != "true" && s.lookWord() != "false" {
		s.numberText()
		return
	}
	s.boolean()
}

// sliceRanges is {[0:4], [1:5:2]}.
func sliceRanges(s *Scanner) {
	list("{", func(s *Scanner) {
		s.Expect("[")
		s.int64()
		s.Expect(":")
		if s.int64(); s.Accept(":") {
			s.int64()
		}
		s.Expect("]")
	}, "}")(s)
}

// byDims skips numbers with an x between them: 2x3.
var byDims = regexp.MustCompile(`^-?[0-9]+(?:x[0-9]+)*`)

func dims(s *Scanner) {
	s.Space()
	w := byDims.FindString(s.Src[s.Pos:s.End])
	if w == "" {
		s.Fail("want numbers such as 2x3, found %s", s.Next())
	}
	s.Pos += len(w)
}

// padding finds the padding of windows: 0_1x2_2.
var padding = regexp.MustCompile(`^-?[0-9]+_-?[0-9]+(?:x-?[0-9]+_-?[0-9]+)*`)

func pads(s *Scanner) {
	s.Space()
	w := padding.FindString(s.Src[s.Pos:s.End])
	if w == "" {
		s.Fail("want low_high of each dimension, such as 0_1x2_2, found %s", s.Next())
	}
	s.Pos += len(w)
}

// edges finds the padding of a pad, low_high_interior of each dimension.
var edges = regexp.MustCompile(`^-?[0-9]+_-?[0-9]+(?:_[0-9]+)?(?:x-?[0-9]+_-?[0-9]+(?:_[0-9]+)?)*`)

func padEdges(s *Scanner) {
	s.Space()
	w := edges.FindString(s.Src[s.Pos:s.End])
	if w == "" {
		s.Fail("want low_high or low_high_interior of each dimension, such as 0_1x2_2_1, found %s", s.Next())
	}
	s.Pos += len(w)
}

// window is {size=2x2 pad=0_0x1_1}: its parts have white space between them, and as many
// numbers as the size.
func window(s *Scanner) {
	counts := make(map[string]int)
	for s.Expect("{"); s.Err == nil && !s.Accept("}"); {
		at := s.Pos
		name, start := s.attrName(), s.Pos
		switch name {
		case "size", "stride", "lhs_dilate", "rhs_dilate", "rhs_reversal":
			dims(s)
		case "pad":
			pads(s)
		default:
			s.FailAt(at, "%s is no part of a window", name)
		}
		if counts[name] > 0 {
			s.FailAt(at, "%s is given twice", name)
		}
		counts[name] = strings.Count(s.Src[start:s.Pos], "x") + 1
	}
	for _, name := range []string{"stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"} {
		if n := counts[name]; n > 0 && n != counts["size"] {
			s.FailAt(0, "%s has %d dimensions, size has %d", name, n, counts["size"])
		}
	}
}

// sparsity is {lhs={sparsity=1x4 dimension=1 stride=1} rhs={…}}.
func sparsity(s *Scanner) {
	side := fields(map[string]value{"sparsity": dims, "dimension": (*Scanner).int64, "stride": (*Scanner).int64})
	fields(map[string]value{"lhs": side, "rhs": side})(s)
}

func domain(s *Scanner) {
	fields(map[string]value{"entry!": sharding, "exit!": sharding, "kind!": func(s *Scanner) {
		if at := s.Pos; s.Quoted() != "sharding" {
			s.FailAt(at, "want the kind \"sharding\"")
		}
	}})(s)
}
