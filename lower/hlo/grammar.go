package hlo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ppc/ir"
	"ppc/lower/hlo/syntax"
)

// A grammar is what HLO's text may say of an opcode: how many operands it has, or
// anyNumber, and its attributes, the required ones with an exclamation mark.
type grammar struct {
	operands int
	attrs    string
}

const anyNumber = -1

// everyInstruction are the attributes that any instruction may have.
const everyInstruction = "backend_config control-predecessors frontend_attributes metadata origin parameter_replication sharding statistics"

// grammars are those of all opcodes but for the ones that split an operation in
// time, whose attributes are those of the operation, and for conditional, which
// has two forms.
var grammars = map[string]grammar{
	"abs":                      {1, ""},
	"acos":                     {1, "result_accuracy"},
	"acosh":                    {1, "result_accuracy"},
	"add":                      {2, ""},
	"add-dependency":           {2, ""},
	"after-all":                {anyNumber, ""},
	"all-gather":               {anyNumber, "channel_id constrain_layout dimensions! replica_groups use_global_device_ids"},
	"all-gather-done":          {1, ""},
	"all-gather-start":         {anyNumber, "channel_id constrain_layout dimensions! replica_groups use_global_device_ids"},
	"all-reduce":               {anyNumber, "channel_id constrain_layout mode replica_groups to_apply! use_global_device_ids"},
	"all-reduce-done":          {1, ""},
	"all-reduce-start":         {anyNumber, "channel_id constrain_layout mode replica_groups to_apply! use_global_device_ids"},
	"all-to-all":               {anyNumber, "channel_id constrain_layout dimensions replica_groups"},
	"and":                      {2, ""},
	"asin":                     {1, "result_accuracy"},
	"asinh":                    {1, "result_accuracy"},
	"atan2":                    {2, ""},
	"atanh":                    {1, "result_accuracy"},
	"batch-norm-grad":          {5, "epsilon! feature_index!"},
	"batch-norm-inference":     {5, "epsilon! feature_index!"},
	"batch-norm-training":      {3, "epsilon! feature_index!"},
	"bitcast":                  {1, ""},
	"bitcast-convert":          {1, ""},
	"broadcast":                {1, "dimensions"},
	"call":                     {anyNumber, "is_composite to_apply!"},
	"cbrt":                     {1, "result_accuracy"},
	"ceil":                     {1, ""},
	"cholesky":                 {1, "lower"},
	"clamp":                    {3, ""},
	"collective-broadcast":     {anyNumber, "channel_id has_dynamic_root replica_groups"},
	"collective-permute":       {anyNumber, "channel_id slice_sizes source_target_pairs!"},
	"collective-permute-done":  {1, ""},
	"collective-permute-start": {anyNumber, "channel_id slice_sizes source_target_pairs!"},
	"compare":                  {2, "direction! order type"},
	"complex":                  {2, ""},
	"concatenate":              {anyNumber, "dimensions!"},
	"convert":                  {1, ""},
	"convolution":              {anyNumber, "algorithm batch_group_count block_scaling_config convolution_kind dim_labels! feature_group_count operand_precision sparsity_config window"},
	"copy":                     {1, ""},
	"copy-done":                {1, ""},
	"copy-start":               {1, "cross_program_prefetch_index"},
	"cosh":                     {1, "result_accuracy"},
	"cosine":                   {1, "result_accuracy"},
	"count-leading-zeros":      {1, ""},
	"custom-call":              {anyNumber, "api_version batch_group_count called_computations custom_call_has_side_effect custom_call_target! dim_labels feature_group_count literal operand_layout_constraints operand_precision output_to_operand_aliasing padding_type schedule to_apply window"},
	"divide":                   {2, ""},
	"domain":                   {1, "domain!"},
	"dot":                      {anyNumber, "algorithm block_scaling_config lhs_batch_dims lhs_contracting_dims operand_precision rhs_batch_dims rhs_contracting_dims sparsity_config"},
	"dynamic-reshape":          {anyNumber, ""},
	"dynamic-slice":            {anyNumber, "dynamic_slice_sizes!"},
	"dynamic-update-slice":     {anyNumber, ""},
	"erf":                      {1, "result_accuracy"},
	"exponential":              {1, "result_accuracy"},
	"exponential-minus-one":    {1, "result_accuracy"},
	"fft":                      {1, "fft_length! fft_type!"},
	"floor":                    {1, ""},
	"fusion":                   {anyNumber, "calls! kind! output_to_operand_aliasing"},
	"gather":                   {2, "collapsed_slice_dims! index_vector_dim! indices_are_sorted offset_dims! operand_batching_dims slice_sizes! start_index_map! start_indices_batching_dims"},
	"get-dimension-size":       {1, "dimensions!"},
	"get-tuple-element":        {1, "index!"},
	"imag":                     {1, ""},
	"infeed":                   {1, "infeed_config"},
	"iota":                     {anyNumber, "iota_dimension!"},
	"is-finite":                {1, ""},
	"log":                      {1, "result_accuracy"},
	"log-plus-one":             {1, "result_accuracy"},
	"logistic":                 {1, "result_accuracy"},
	"map":                      {anyNumber, "dimensions to_apply!"},
	"maximum":                  {2, ""},
	"minimum":                  {2, ""},
	"mulhi":                    {2, ""},
	"multiply":                 {2, ""},
	"negate":                   {1, ""},
	"not":                      {1, ""},
	"opt-barrier":              {1, ""},
	"or":                       {2, ""},
	"outfeed":                  {2, "outfeed_config outfeed_shape"},
	"pad":                      {2, "padding!"},
	"partition-id":             {0, ""},
	"popcnt":                   {1, ""},
	"power":                    {2, ""},
	"ragged-all-to-all":        {anyNumber, "channel_id dimensions replica_groups"},
	"ragged-dot":               {anyNumber, "lhs_batch_dims lhs_contracting_dims lhs_ragged_dims operand_precision rhs_batch_dims rhs_contracting_dims rhs_group_dims"},
	"real":                     {1, ""},
	"recv":                     {1, "channel_id is_host_transfer"},
	"recv-done":                {1, "channel_id is_host_transfer"},
	"reduce":                   {anyNumber, "dimensions! to_apply!"},
	"reduce-precision":         {1, "exponent_bits! mantissa_bits!"},
	"reduce-scatter":           {anyNumber, "channel_id constrain_layout dimensions! mode replica_groups to_apply! use_global_device_ids"},
	"reduce-window":            {anyNumber, "to_apply! window"},
	"remainder":                {2, ""},
	"replica-id":               {0, ""},
	"reshape":                  {1, "inferred_dimension"},
	"reverse":                  {1, "dimensions!"},
	"rng":                      {anyNumber, "distribution!"},
	"rng-bit-generator":        {1, "algorithm!"},
	"rng-get-and-update-state": {anyNumber, "delta!"},
	"round-nearest-afz":        {1, ""},
	"round-nearest-even":       {1, ""},
	"rsqrt":                    {1, "result_accuracy"},
	"scaled-dot":               {4, "algorithm lhs_batch_dims lhs_contracting_dims operand_precision rhs_batch_dims rhs_contracting_dims"},
	"scan":                     {anyNumber, "dimensions! is_associative is_reverse num_carries! to_apply!"},
	"scatter":                  {anyNumber, "index_vector_dim! indices_are_sorted input_batching_dims inserted_window_dims! scatter_dims_to_operand_dims! scatter_indices_batching_dims to_apply! unique_indices update_window_dims!"},
	"select":                   {3, ""},
	"select-and-scatter":       {3, "scatter! select! window"},
	"send":                     {2, "channel_id is_host_transfer"},
	"send-done":                {1, "channel_id is_host_transfer"},
	"set-dimension-size":       {2, "dimensions!"},
	"shift-left":               {2, ""},
	"shift-right-arithmetic":   {2, ""},
	"shift-right-logical":      {2, ""},
	"sign":                     {1, ""},
	"sine":                     {1, "result_accuracy"},
	"sinh":                     {1, "result_accuracy"},
	"slice":                    {1, "slice!"},
	"sort":                     {anyNumber, "dimensions! is_stable to_apply!"},
	"sqrt":                     {1, "result_accuracy"},
	"stochastic-convert":       {2, ""},
	"subtract":                 {2, ""},
	"tan":                      {1, "result_accuracy"},
	"tanh":                     {1, "result_accuracy"},
	"topk":                     {1, "is_stable k! largest"},
	"transpose":                {1, "dimensions!"},
	"triangular-solve":         {2, "left_side lower transpose_a unit_diagonal"},
	"while":                    {1, "body! condition!"},
	"xor":                      {2, ""},
	"tuple":                    {anyNumber, ""},
	"parameter":                {0, ""},
	"constant":                 {0, ""},
	"conditional":              {anyNumber, "true_computation false_computation branch_computations"},
}

// grammatical checks in against the grammar of its opcode.
func (b *body) grammatical(in *syntax.Instruction) {
	g, known := grammarOf(in.Opcode)
	seen := make(map[string]bool)
	allowed := strings.Fields(everyInstruction + " " + strings.ReplaceAll(g.attrs, "!", ""))
	for _, a := range in.Attrs {
		switch {
		case seen[a.Name]:
			b.FailAt(a.At, "attribute %s is given twice", a.Name)
		case known && !instructionAttrs[a.Name]:
			b.FailAt(a.At, "%s is no attribute of an instruction%s", a.Name, syntax.Hint(a.Name, instructionAttrNames()))
		case known && !slices.Contains(allowed, a.Name):
			b.FailAt(a.At, "%s has no attribute %s; its own are %s", in.Opcode, a.Name, listed(g))
		}
		seen[a.Name] = true
		if err := valueFits(in.Opcode, a); err != nil {
			b.FailAt(a.At, "%s: %v", a.Name, err)
		}
		if a.Name == "control-predecessors" {
			b.predecessors(a)
		}
	}
	for _, name := range strings.Fields(g.attrs) {
		if name, required := strings.CutSuffix(name, "!"); required && !seen[name] {
			b.FailAt(in.OpAt, "%s has no %s", in.Opcode, name)
		}
	}
	if in.Shape == nil && known && !slices.Contains(unshaped, in.Opcode) && in.Opcode != "parameter" && in.Opcode != "constant" {
		b.FailAt(in.At, "%s needs its shape written: it does not follow from the operands", in.Opcode)
	}
	b.counted(in)
	if n := len(in.Operands); known && g.operands != anyNumber && n != g.operands {
		b.FailAt(in.OpAt, "%s has %s, want %d", in.Opcode, ir.Counted(n, "operand"), g.operands)
	}
}

// unshaped are the opcodes whose shape may be left out of the text, since it follows from the
// operands, and those that an operation without a shape may be.
var unshaped = strings.Fields(`abs acos acosh add add-dependency after-all and asin asinh atan2 atanh batch-norm-grad batch-norm-inference
	batch-norm-training broadcast call cbrt ceil cholesky clamp compare complex concatenate conditional convolution copy cosh cosine count-leading-zeros divide domain dot erf
	exponential exponential-minus-one fft floor gather get-dimension-size get-tuple-element imag is-finite log log-plus-one logistic map maximum minimum mulhi multiply negate
	not or pad partition-id popcnt power ragged-dot real reduce reduce-window remainder replica-id reverse round-nearest-afz round-nearest-even rsqrt scaled-dot scan scatter
	select select-and-scatter set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign sine sinh sort sqrt subtract tan tanh topk transpose
	triangular-solve tuple while xor`)

// parity says of opcodes whether the number of operands is even or odd.
var parity = map[string]int{"reduce": 0, "reduce-window": 0, "scatter": 1}

// counted checks the number of operands of in where it depends on what else in says, and that of
// the dimensions where it is one.
func (b *body) counted(in *syntax.Instruction) {
	n := len(in.Operands)
	if want, ok := parity[in.Opcode]; ok && n%2 != want {
		b.FailAt(in.OpAt, "%s has %s, want an %s number", in.Opcode, ir.Counted(n, "operand"), [...]string{"even", "odd"}[want])
	}
	if in.Shape == nil && in.Opcode == "reduce-window" && n > 2 {
		b.FailAt(in.At, "reduce-window of several operands needs its shape written")
	}
	for _, a := range in.Attrs {
		switch {
		case a.Name == "slice_sizes" && strings.HasPrefix(in.Opcode, "collective-permute") && n != 4:
			b.FailAt(in.OpAt, "%s of slices has %s, want 4", in.Opcode, ir.Counted(n, "operand"))
		case a.Name == "dimensions" && slices.Contains(oneDimension, in.Opcode):
			if dims, err := syntax.ParseInts(a.Text); err == nil && len(dims) != 1 {
				b.FailAt(a.At, "dimensions: want one dimension, found %s", a.Text)
			}
		}
	}
	if slices.Contains([]string{"all-reduce", "all-reduce-start", "reduce-scatter"}, in.Opcode) {
		b.channelled(in)
	}
}

// oneDimension are the opcodes whose dimensions are one, which no row reads.
var oneDimension = []string{"all-gather-start", "get-dimension-size", "ragged-all-to-all", "scan", "set-dimension-size"}

// channelled checks that a collective over global device ids has a channel.
func (b *body) channelled(in *syntax.Instruction) {
	global, channel := -1, false
	for _, a := range in.Attrs {
		if a.Name == "use_global_device_ids" && a.Text == "true" {
			global = a.At
		}
		channel = channel || a.Name == "channel_id"
	}
	if global >= 0 && !channel {
		b.FailAt(global, "use_global_device_ids: %s has no channel_id", in.Opcode)
	}
}

// grammarOf is the grammar of an opcode. One that starts an operation has the attributes of the
// operation; what goes on with it has those of its start.
func grammarOf(opcode string) (grammar, bool) {
	if g, ok := grammars[opcode]; ok {
		return g, true
	}
	op, split := Wrapped(opcode)
	if !split {
		return grammar{}, false
	}
	switch attrs := "async_execution_thread output_to_operand_aliasing"; {
	case op == "async" && !strings.HasSuffix(opcode, "-start"):
		return grammar{anyNumber, attrs + " calls"}, true
	case op == "async":
		return grammar{anyNumber, attrs + " calls!"}, true
	case strings.HasSuffix(opcode, "-start"):
		return grammar{anyNumber, grammars[op].attrs + " " + strings.TrimPrefix(attrs, "async_execution_thread ") + " async_execution_thread"}, true
	default:
		return grammar{anyNumber, attrs}, true
	}
}

// predecessors checks that the names of instructions in a are those of earlier ones.
func (b *body) predecessors(a syntax.Attr) {
	names, err := syntax.Elements(a.Text)
	if err == nil && len(names) == 0 {
		err = errors.New("want names of instructions, found none")
	}
	for _, name := range names {
		if name = strings.TrimPrefix(name, "%"); err == nil && b.env[name] == nil {
			err = fmt.Errorf("there is no instruction %s before this one%s", name, syntax.Hint(name, sortedKeys(b.env)))
		}
	}
	if err != nil {
		b.FailAt(a.At, "%s: %v", a.Name, err)
	}
}

// replication checks that in says of each part of its value, of type t, whether it is
// replicated, if it does of one.
func (b *body) replication(in *syntax.Instruction, t *ir.Type) {
	for _, a := range in.Attrs {
		if a.Name != "parameter_replication" {
			continue
		}
		said, _ := syntax.Elements(a.Text)
		if n := len(flatTypes(t, nil)); n != len(said) {
			b.FailAt(a.At, "%s has %s, the value has %s", a.Name, ir.Counted(len(said), "element"), ir.Counted(n, "part"))
		}
	}
}

func listed(g grammar) string {
	if g.attrs == "" {
		return "none"
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(g.attrs, "!", "")), ", ")
}

// valueFits checks the value of an attribute as far as its text says what it is. One that names
// a computation names one, unless it is a list.
func valueFits(opcode string, a syntax.Attr) error {
	if err := cmp.Or(syntax.CheckValue(a.Name, a.Text), syntax.CheckValue(opcode+"."+a.Name, a.Text)); err != nil {
		return err
	}
	if syntax.ComputationAttrs[a.Name] && a.Comp == nil && strings.HasPrefix(a.Text, "{") != strings.HasSuffix(a.Name, "_computations") {
		return fmt.Errorf("%s is no name of a computation, nor a list where there may be several", a.Text)
	}
	for _, f := range devices {
		if f.name == a.Name {
			if err := f.parse(new(ir.Module), a.Text, new(ir.Attrs)); !errors.Is(err, syntax.ErrBeyond) {
				return err
			}
		}
	}
	return nil
}

// devices are the fields that list devices, which are read of every opcode.
var devices = []field{groups(), pairs()}
