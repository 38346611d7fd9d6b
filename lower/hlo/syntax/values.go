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
// instructions. One that means several things has its opcode in front.
var values = make(map[string]value)

// init fills values: modules have attributes, of which one holds modules.
func init() {
	flags, numbers := list("{", (*Scanner).boolean, "}"), value((*Scanner).int64s)
	for _, group := range []struct {
		names string
		v     value
	}{
		{"alias_passthrough_params constrain_layout custom_call_has_side_effect has_dynamic_root indices_are_sorted is_associative is_composite is_host_transfer is_reverse is_scheduled is_stable " +
			"largest left_side lower unique_indices unit_diagonal use_global_device_ids", (*Scanner).boolean},
		{"batch_group_count channel_id delta exponent_bits feature_group_count feature_index index index_vector_dim inferred_dimension iota_dimension k mantissa_bits num_carries num_partitions " +
			"replica_count", (*Scanner).int64},
		{"cross_program_prefetch_index", (*Scanner).int32},
		{"epsilon", (*Scanner).float32},
		{"collapsed_slice_dims dimensions dynamic_slice_sizes fft_length input_batching_dims inserted_window_dims lhs_batch_dims lhs_contracting_dims lhs_ragged_dims offset_dims " +
			"operand_batching_dims rhs_batch_dims rhs_contracting_dims rhs_group_dims scatter_dims_to_operand_dims scatter_indices_batching_dims start_index_map start_indices_batching_dims " +
			"update_window_dims", numbers},
		{"collective-permute.slice_sizes collective-permute-start.slice_sizes source_target_pairs", list("{", numbers, "}")},
		{"parameter_replication", flags},
		{"allow_spmd_sharding_propagation_to_output allow_spmd_sharding_propagation_to_parameters", flagOrFlags(flags)},
		{"async_execution_thread custom_call_target execution_thread infeed_config outfeed_config", (*Scanner).text},
		{"direction fft_type order transpose_a type", word},
		{"convolution.algorithm dot.algorithm scaled-dot.algorithm", among(dotAlgorithms...)},
		{"rng-bit-generator.algorithm", among("rng_default", "rng_three_fry", "rng_philox")},
		{"api_version", among("API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI")},
		{"convolution_kind", among("fprop", "wgrad", "dgrad", "unset")},
		{"distribution", among("rng_uniform", "rng_normal")},
		{"kind", among("kLoop", "kInput", "kOutput", "kCustom")},
		{"mode", among("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id")},
		{"padding_type", among("PADDING_INVALID", "PADDING_VALID", "PADDING_SAME")},
		{"schedule", among("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")},
		{"operand_precision", list("{", precision, "}")},
		{"result_accuracy", accuracy},
		{"backend_config", textOrJSON},
		{"frontend_attributes", frontend},
		{"statistics", statistics},
		{"metadata", metadata},
		{"origin", origin},
		{"origin_recovery_table", recoveryTable},
		{"debug_attributes", debugAttributes},
		{"domain", domain},
		{"sharding", sharding},
		{"buffer_donor", trailing("{", donor, "}")},
		{"input_output_alias", trailing("{", moduleAlias, "}")},
		{"output_to_operand_aliasing", trailing("{", alias, "}")},
		{"entry_computation_layout", entryLayout},
		{"outfeed_shape", shape},
		{"literal", literal},
		{"padding", padEdges},
		{"slice", sliceRanges},
		{"sparsity_config", sparsity},
		{"window", window},
	} {
		for _, name := range strings.Fields(group.names) {
			values[name] = group.v
		}
	}
}

// dotAlgorithms are the ways in which contractions are computed.
var dotAlgorithms = []string{"unset", "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_any_f8_any_f8_any", "dot_any_f8_any_f8_any_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
	"dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_bf16_bf16_f32_x9", "dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64"}

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
		s.Fail("%v", noInteger(err, s.Next()))
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
