package rules

import (
	"strings"
	"testing"

	"ppc/ir/verify"
	"ppc/lower/hlo"

	_ "ppc/ir/dialect"
)

// helpers are computations that the programs below call.
const helpers = `
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
twice { x = f32[4] parameter(0)  ROOT y = f32[4] add(x, x) }
`

// check reads a program whose entry is body and verifies it.
func check(t *testing.T, header, body string) error {
	t.Helper()
	m, err := hlo.Parse("in.hlo", []byte("HloModule m"+header+"\n"+helpers+"ENTRY main {\n"+body+"\n}\n"))
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := verify.Verify(m); err != nil {
		t.Fatalf("%v", err)
	}
	return Verify(m)
}

const two = "p = f32[4] parameter(0)  q = f32[4] parameter(1)\n"

// TestRefused breaks each rule once. The second of each two programs keeps it.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, header, body, want, fixed string }{
		{"parameter", ", entry_computation_layout={(f32[5]{0}, f32[4]{0})->f32[4]{0}}", two + "ROOT r = f32[4] add(p, q)", "parameter 0 of the entry computation is f32[4], entry_computation_layout says f32[5]", ""},
		{"parameters", ", entry_computation_layout={(f32[4]{0})->f32[4]{0}}", two + "ROOT r = f32[4] add(p, q)", "has 2 parameters, entry_computation_layout has 1", ""},
		{"result", ", entry_computation_layout={(f32[4]{0}, f32[4]{0})->f64[4]{0}}", two + "ROOT r = f32[4] add(p, q)", "returns f32[4], entry_computation_layout says f64[4]", ""},
		{"alias", ", input_output_alias={ {}: (2, {}, may-alias) }", two + "ROOT r = f32[4] add(p, q)", "names parameter 2 of 2", ""},
		{"alias twice", ", input_output_alias={ {0}: (0, {}, must-alias), {1}: (0, {}, must-alias) }", two + "ROOT r = (f32[4], f32[4]) tuple(p, q)", "names part {} of parameter 0 twice", ""},
		{"alias of a shape", ", input_output_alias={ {}: (0, {}, must-alias) }", "p = f32[4] parameter(0)  ROOT r = f32[2,2] reshape(p)", "output {} is f32[2,2], the parameter that it takes the memory of f32[4]", ""},
		{"alias of a tuple", ", input_output_alias={ {}: (0, {}, may-alias) }", two + "ROOT r = (f32[4], f32[4]) tuple(p, q)", "output {} is (f32[4], f32[4]), the parameter that it takes the memory of f32[4]", ""},
		{"alias of another size", ", input_output_alias={ {}: (0, {}, may-alias) }", "p = f32[4] parameter(0)  ROOT r = f32[2] slice(p), slice={[0:2]}", "output {} is f32[2], the parameter that it takes the memory of f32[4]", "p = f32[4] parameter(0)  ROOT r = f32[4] negate(p)"},
		{"alias twice where it may", ", input_output_alias={ {0}: (0, {}), {1}: (0, {}) }", two + "ROOT r = (f32[4], f32[4]) tuple(p, q)", "names part {} of parameter 0 twice", ""},
		{"tuple of one", "", "p = f32[4,2] parameter(0)  z = f32[] constant(0)  ROOT r = (f32[4]) reduce(p, z), dimensions={1}, to_apply=sum", "computes no (f32[4])", "p = f32[4,2] parameter(0)  z = f32[] constant(0)  ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=sum"},
		{"tuple of a slice", "", "p = f32[4] parameter(0)  ROOT r = (f32[2], f32[2]) slice(p), slice={[0:2]}", "computes no (f32[2], f32[2])", ""},
		{"group of none", "", "p = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(p), replica_groups={{}}, to_apply=sum", "group 0 of replica_groups has no device", "p = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(p), replica_groups={}, to_apply=sum"},
		{"gathered to nothing", "", "p = f32[4] parameter(0)  ROOT r = f32[0] all-gather(p), replica_groups={}, dimensions={0}", "dimension 0 has size 4 on one device and 0 on all", "p = f32[4] parameter(0)  ROOT r = f32[12] all-gather(p), replica_groups={}, dimensions={0}"},
		{"bound of a result", "", "p = f32[16] parameter(0)  ROOT r = f32[<=8] sine(p)", "is f32[<=8], its operands make f32[16]", "p = f32[16] parameter(0)  ROOT r = f32[<=16] sine(p)"},
		{"bound of an operand", "", "p = f32[2,<=8] parameter(0)  q = f32[2,9] parameter(1)  ROOT r = f32[4,9] concatenate(p, q), dimensions={0}", "of the bounds", "p = f32[2,<=9] parameter(0)  q = f32[2,9] parameter(1)  ROOT r = f32[4,9] concatenate(p, q), dimensions={0}"},
		{"bound of a count", "", "p = f32[<=8] parameter(0)  ROOT r = f32[3] reshape(p)", "of the bounds", "p = f32[<=3] parameter(0)  ROOT r = f32[3] reshape(p)"},
		{"composite", "", "p = f32[4] parameter(0)  ROOT r = f32[4] call(p), to_apply=twice, is_composite=true", "have no composite.name", `p = f32[4] parameter(0)  ROOT r = f32[4] call(p), to_apply=twice, is_composite=true, frontend_attributes={composite.name="my.twice"}`},
		{"context of an update", "", "p = f32[4] parameter(0)  s = ((f32[4]), f32[4], u32[]) async-start(p), calls=twice  u = ((f32[4]), f32[4], s32[2]) async-update(s)  ROOT r = f32[4] async-done(u)", "it goes on with ((f32[4]), f32[4], u32[])", "p = f32[4] parameter(0)  s = ((f32[4]), f32[4], u32[]) async-start(p), calls=twice  u = ((f32[4]), f32[4], u32[]) async-update(s)  ROOT r = f32[4] async-done(u)"},
		{"offset of a slice", "", "p = f32[2,8] parameter(0)  q = f32[2,8] parameter(1)  n = s32[] constant(0)  one = (s32[]) tuple(n)  both = (s32[], s32[]) tuple(n, n)  ROOT r = f32[2,8] collective-permute(p, q, both, one), source_target_pairs={{0,1}}, slice_sizes={{1,8}}", "the offset in f32[2,8] is (s32[]), want a number for each dimension", "p = f32[2,8] parameter(0)  q = f32[2,8] parameter(1)  n = s32[] constant(0)  both = (s32[], s32[]) tuple(n, n)  ROOT r = f32[2,8] collective-permute(p, q, both, both), source_target_pairs={{0,1}}, slice_sizes={{1,8}}"},
		{"donor", ", buffer_donor={ (1, {1}) }", two + "ROOT r = f32[4] add(p, q)", "parameter 1 is f32[4], {1} is no tensor of it", ""},
		{"unreached", "\nnever { p = f32[4] parameter(0)  ROOT c = f32[5] copy(p) }", two + "ROOT r = f32[4] add(p, q)", "in @never: hlo.copy: is f32[5], its operands make f32[4]", ""},
		{"calls of unreached", "\nlast { p = f32[4] parameter(0)  ROOT c = f32[5] copy(p) }\nnever { p = f32[4] parameter(0)  ROOT c = f32[5] fusion(p), kind=kLoop, calls=last }", two + "ROOT r = f32[4] add(p, q)", "in @last: hlo.copy: is f32[5], its operands make f32[4]", ""},
		{"origin of a tuple", "", two + `ROOT r = (f32[4], f32[4]) tuple(p, q), origin={({"a"}, ({"b"}))}`, `is of no value of type (f32[4], f32[4])`, two + `ROOT r = (f32[4], f32[4]) tuple(p, q), origin={({"a"}, {"b"})}`},
		{"origin", "", two + `ROOT r = f32[4] add(p, q), origin={({"a"}, {"b"})}`, `is of no value of type f32[4]`, two + `ROOT r = f32[4] add(p, q), origin={{"a"}}`},

		{"copy", "", "p = f32[4] parameter(0)  ROOT r = f32[5] copy(p)", "is f32[5], its operands make f32[4]", "p = f32[4] parameter(0)  ROOT r = f32[4] copy(p)"},
		{"tuple", "", two + "ROOT r = (f32[4], s32[4]) tuple(p, q)", "is (f32[4], s32[4]), its operands make (f32[4], f32[4])", two + "ROOT r = (f32[4], f32[4]) tuple(p, q)"},
		{"call", "", "p = f32[5] parameter(0)  ROOT r = f32[4] fusion(p), kind=kLoop, calls=twice", "operand 0 is f32[5], parameter 0 of twice is f32[4]", "p = f32[4] parameter(0)  ROOT r = f32[4] fusion(p), kind=kLoop, calls=twice"},
		{"returns", "", "p = f32[4] parameter(0)  ROOT r = f32[5] fusion(p), kind=kLoop, calls=twice", "is f32[5], twice returns f32[4]", ""},
		{"operands", "", two + "ROOT r = f32[4] fusion(p, q), kind=kLoop, calls=twice", "has 2 operands, twice takes 1", ""},
		{"aliasing", "", "p = f32[4] parameter(0)  ROOT r = f32[4] fusion(p), kind=kLoop, calls=twice, output_to_operand_aliasing={{}: (1, {})}", "names operand 1 of 1", "p = f32[4] parameter(0)  ROOT r = f32[4] fusion(p), kind=kLoop, calls=twice, output_to_operand_aliasing={{}: (0, {})}"},
		{"aliased part", "", "p = f32[4] parameter(0)  ROOT r = f32[4] fusion(p), kind=kLoop, calls=twice, output_to_operand_aliasing={{0}: (0, {})}", "part {0} of the result f32[4]", ""},

		{"no done", "", "p = f32[4] parameter(0)  s = f32[4] all-reduce-start(p), to_apply=sum  ROOT r = f32[4] negate(p)", "it has no all-reduce-done", "p = f32[4] parameter(0)  s = f32[4] all-reduce-start(p), to_apply=sum  ROOT r = f32[4] all-reduce-done(s)"},
		{"no start", "", "p = ((f32[4]), f32[4], u32[]) parameter(0)  ROOT r = f32[4] async-done(p), calls=twice", "does not come from any async-start", ""},
		{"returned start", "", "p = f32[4] parameter(0)  ROOT s = (f32[4], f32[4], u32[]) copy-start(p)", "it has no copy-done", ""},
		{"async operand", "", "p = f32[5] parameter(0)  s = ((f32[5]), f32[4], u32[]) async-start(p), calls=twice  ROOT r = f32[4] async-done(s)", "has operands (f32[5]), what it calls takes (f32[4])", "p = f32[4] parameter(0)  s = ((f32[4]), f32[4], u32[]) async-start(p), calls=twice  ROOT r = f32[4] async-done(s)"},
		{"async result", "", "p = f32[4] parameter(0)  s = ((f32[4]), f32[5], u32[]) async-start(p), calls=twice  ROOT r = f32[4] async-done(s)", "has the result f32[5], what it calls returns f32[4]", ""},
		{"async done", "", "p = f32[4] parameter(0)  s = ((f32[4]), f32[4], u32[]) async-start(p), calls=twice  ROOT r = f32[5] async-done(s)", "is f32[5], what it calls returns f32[4]", ""},
		{"copy start", "", "p = f32[4] parameter(0)  s = (f32[4], f32[4], s32[]) copy-start(p)  ROOT r = f32[4] copy-done(s)", "its operands make (f32[4], f32[4], u32[])", "p = f32[4] parameter(0)  s = (f32[4], f32[4], u32[]) copy-start(p)  ROOT r = f32[4] copy-done(s)"},
		{"gather start", "", "p = f32[4] parameter(0)  s = (f32[5], f32[8]) all-gather-start(p), dimensions={0}  ROOT r = f32[8] all-gather-done(s)", "is (f32[5], f32[8]), want (f32[4], results)", "p = f32[4] parameter(0)  s = (f32[4], f32[8]) all-gather-start(p), dimensions={0}  ROOT r = f32[8] all-gather-done(s)"},
		{"gathered size", "", "p = f32[4,2] parameter(0)  s = (f32[4,2], f32[4,6]) all-gather-start(p), replica_groups={{0,1}}, dimensions={1}  ROOT r = f32[4,6] all-gather-done(s)", "gives f32[4,6], want f32[4,4]", "p = f32[4,2] parameter(0)  s = (f32[4,2], f32[4,4]) all-gather-start(p), replica_groups={{0,1}}, dimensions={1}  ROOT r = f32[4,4] all-gather-done(s)"},
		{"gathered of two", "", two + "s = ((f32[4], f32[4]), (f32[8], f32[12])) all-gather-start(p, q), replica_groups={{0,1}}, dimensions={0}  ROOT r = (f32[8], f32[12]) all-gather-done(s)", "gives f32[12], want f32[8]", ""},
		{"gather done", "", "p = f32[4] parameter(0)  s = (f32[4], f32[8]) all-gather-start(p), dimensions={0}  ROOT r = f32[4] all-gather-done(s)", "is f32[4], its operands make (f32[4], f32[8])", ""},
		{"send", "", "p = f32[4] parameter(0)  s = (f32[4], u32[], token[]) send(p, p), channel_id=1  ROOT r = token[] send-done(s), channel_id=1", "operand 1 is f32[4], want a token", "p = f32[4] parameter(0)  t = token[] after-all()  s = (f32[4], u32[], token[]) send(p, t), channel_id=1  ROOT r = token[] send-done(s), channel_id=1"},
		{"recv", "", "t = token[] after-all()  s = (f32[4], u32[2], token[]) recv(t), channel_id=1  ROOT r = (f32[4], token[]) recv-done(s), channel_id=1", "its operands make (f32[4], u32[], token[])", "t = token[] after-all()  s = (f32[4], u32[], token[]) recv(t), channel_id=1  ROOT r = (f32[4], token[]) recv-done(s), channel_id=1"},

		{"groups twice", "", "p = f32[4] parameter(0)  s = f32[4] all-reduce-start(p), replica_groups={{0,1},{1,2}}, to_apply=sum  ROOT r = f32[4] all-reduce-done(s)", "have device 1 twice", ""},
		{"groups gap", "", "p = f32[4] parameter(0)  s = f32[4] all-reduce-start(p), replica_groups={{0,1},{3}}, to_apply=sum  ROOT r = f32[4] all-reduce-done(s)", "have 3 devices but not device 2", ""},
		{"groups sizes", "", "p = f32[4] parameter(0)  s = (f32[4], f32[8]) all-gather-start(p), replica_groups={{0,1},{2}}, dimensions={0}  ROOT r = f32[8] all-gather-done(s)", "are of several sizes", ""},
		{"groups of an op", ", num_partitions=4", "p = f32[4] parameter(0)  ROOT r = f32[8] all-gather(p), replica_groups={{0,1}}, dimensions={0}, channel_id=1, use_global_device_ids=true", "have 2 devices, the program 4 devices", "p = f32[4] parameter(0)  ROOT r = f32[8] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}, channel_id=1, use_global_device_ids=true"},
		{"groups of a mesh", ", num_partitions=4", "p = f32[4] parameter(0)  ROOT r = f32[8] all-gather(p), replica_groups=mesh['a'=2,'b'=4] {'a'}, dimensions={0}, channel_id=1, use_global_device_ids=true", "the mesh of replica_groups has 8 devices, the program 4 devices", "p = f32[4] parameter(0)  ROOT r = f32[8] all-gather(p), replica_groups=mesh['a'=2,'b'=2] {'a'}, dimensions={0}, channel_id=1, use_global_device_ids=true"},
		{"groups of the program", ", replica_count=4", "p = f32[4] parameter(0)  s = f32[4] all-reduce-start(p), replica_groups={{0,1}}, to_apply=sum  ROOT r = f32[4] all-reduce-done(s)", "have 2 devices, the program 4 replicas", ""},
		{"pairs", "", two + "ROOT r = (f32[4], f32[4]) collective-permute(p, q), source_target_pairs={{0,1},{0,2}}", "device 0 is the source of 2 pairs, want at most 1", two + "ROOT r = (f32[4], f32[4]) collective-permute(p, q), source_target_pairs={{0,1},{1,0}}"},
		{"exchange", "", two + "ROOT r = (f32[4], f32[4]) all-to-all(p, q), replica_groups={{0,1,2}}", "has 2 operands for groups of 3", two + "ROOT r = (f32[4], f32[4]) all-to-all(p, q), replica_groups={{0,1}}"},

		{"topk", "", "p = f32[3,9] parameter(0)  ROOT r = (f32[3,3], s32[3,2]) topk(p), k=2", "its operands make (f32[3,2], s32[3,2])", "p = f32[3,9] parameter(0)  ROOT r = (f32[3,2], s32[3,2]) topk(p), k=2"},
		{"map", "", two + "ROOT r = f32[5] map(p, q), dimensions={0}, to_apply=sum", "is f32[5], its operands make f32[4]", two + "ROOT r = f32[4] map(p, q), dimensions={0}, to_apply=sum"},
		{"map of a kind", "", two + "ROOT r = f32[4] map(p), dimensions={1}, to_apply=sum", "does not fit its operands (f32[4])", two + "ROOT r = f32[4] map(p, q), dimensions={1}, to_apply=sum"},
		{"growing", "", "p = f32[1,8] parameter(0)  ROOT r = f32[4,8] broadcast(p), dimensions={0,1}", "dimension 0 of its operand f32[1,8] is dimension 0 of f32[4,8], want one of that size", "p = f32[8] parameter(0)  ROOT r = f32[4,8] broadcast(p), dimensions={1}"},
		{"growing bound", "", "p = f32[1,8] parameter(0)  ROOT r = f32[<=4,8] broadcast(p), dimensions={0,1}", "want one of that size", "p = f32[<=4,8] parameter(0)  ROOT r = f32[<=4,8] broadcast(p), dimensions={0,1}"},
		{"all", ", replica_count=4", "p = f32[4] parameter(0)  ROOT r = f32[8] all-gather(p), replica_groups={}, dimensions={0}", "dimension 0 has size 4 on one device and 8 on all, of which there are 4", "p = f32[4] parameter(0)  ROOT r = f32[16] all-gather(p), replica_groups={}, dimensions={0}"},
		{"all scattered", ", replica_count=4", "p = f32[8] parameter(0)  ROOT r = f32[4] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=sum", "dimension 0 has size 4 on one device and 8 on all", "p = f32[16] parameter(0)  ROOT r = f32[4] reduce-scatter(p), replica_groups={}, dimensions={0}, to_apply=sum"},
		{"beyond", ", replica_count=4", "p = f32[4] parameter(0)  ROOT r = f32[4] collective-permute(p), source_target_pairs={{0,1},{1,9}}", "name device 9, the program has 4 replicas", "p = f32[4] parameter(0)  ROOT r = f32[4] collective-permute(p), source_target_pairs={{0,1},{1,9}}, channel_id=1"},
		{"before", "", two + "ROOT r = (f32[4], f32[4]) collective-permute(p, q), source_target_pairs={{0,1},{1,-1}}", "name device -1", ""},
		{"ids without channel", "", "p = f32[4] parameter(0)  s = (f32[4], f32[8]) all-gather-start(p), replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true  ROOT r = f32[8] all-gather-done(s)", "there is no channel_id", "p = f32[4] parameter(0)  s = (f32[4], f32[8]) all-gather-start(p), replica_groups={{0,1}}, dimensions={0}, channel_id=1, use_global_device_ids=true  ROOT r = f32[8] all-gather-done(s)"},
		{"split operands", "", two + "ROOT r = (f32[4], f32[4]) all-to-all(p, q), replica_groups={{0,1}}, dimensions={0}", "has 2 operands, of which none is split", ""},
		{"bare start", "", "p = f32[4] parameter(0)  s = f32[4] collective-permute-start(p), source_target_pairs={{0,1}}  ROOT r = f32[4] collective-permute-done(s)", "is f32[4], want (f32[4], results)", "p = f32[4] parameter(0)  s = (f32[4], f32[4]) collective-permute-start(p), source_target_pairs={{0,1}}  ROOT r = f32[4] collective-permute-done(s)"},
		{"reduced pair", "", "p = f32[4] parameter(0)  s = (f32[4], f32[4]) all-reduce-start(p), to_apply=sum  ROOT r = f32[4] all-reduce-done(s)", "its operands make f32[4]", ""},
		{"host", "", "p = f32[4] parameter(0)  t = token[] after-all()  s = (f32[4], u32[], token[]) send(p, t), channel_id=1, is_host_transfer=true  ROOT r = token[] send-done(s), channel_id=1", "is_host_transfer is not what its beginning says", "p = f32[4] parameter(0)  t = token[] after-all()  s = (f32[4], u32[], token[]) send(p, t), channel_id=1, is_host_transfer=true  ROOT r = token[] send-done(s), channel_id=1, is_host_transfer=true"},
		{"unused", "\nf { a = f32[4] parameter(0)  b = f32[4] negate(a)  ROOT c = f32[4] sine(a) }", two + "ROOT r = f32[4] fusion(p), kind=kLoop, calls=f", "b of f is not used", ""},
		{"unused parameter", "\nf { a = f32[4] parameter(0)  b = f32[4] parameter(1)  ROOT c = f32[4] sine(a) }", two + "ROOT r = f32[4] fusion(p, q), kind=kLoop, calls=f", "parameter 1 of f is not used", ""},
		{"used root", "\nf { a = f32[4] parameter(0)  ROOT b = f32[4] negate(a)  c = f32[4] sine(b) }", two + "ROOT r = f32[4] fusion(p), kind=kLoop, calls=f", "b, what f returns, is used in it", "ROOT r = f32[4] constant({1,2,3,4})"},
		{"tuple of other precision", "", two + "ROOT r = (f32[4], bf16[4]) tuple(p, q)", "its operands make (f32[4], f32[4])", ""},
		{"elements of tuples", "", "p = (f32[4]) parameter(0)  q = f32[4] parameter(1)  ROOT r = f32[4] multiply(p, q)", "operand 0 is (f32[4]), want a tensor", ""},
		{"tuple of elements", "", two + "ROOT r = (f32[4], f32[4]) multiply(p, q)", "is computed element by element, not (f32[4], f32[4])", ""},
		{"padding", "", "p = (f32[4]) parameter(0)  q = f32[4] parameter(1)  ROOT r = f32[5] pad(q, p), padding=0_1", "operand 1 is (f32[4]), want a tensor", ""},
		{"ended twice", "", "p = f32[4] parameter(0)  s = f32[4] all-reduce-start(p), to_apply=sum  a = f32[4] all-reduce-done(s)  b = f32[4] all-reduce-done(s)  ROOT r = f32[4] add(a, b)", "it has 2 all-reduce-dones", ""},
		{"bounds", "", "p = f32[1] parameter(0)  n = s32[] parameter(1)  ROOT r = f32[<=4] set-dimension-size(p, n), dimensions={0}", "its operands make f32[<=1]", "p = f32[4] parameter(0)  n = s32[] parameter(1)  ROOT r = f32[<=4] set-dimension-size(p, n), dimensions={0}"},
		{"numbers of indices", "", "p = f32[4,4] parameter(0)  i = f32[2] parameter(1)  ROOT r = f32[2,2] dynamic-slice(p, i), dynamic_slice_sizes={2,2}", "index 0 is f32[2], want integers", "p = f32[4,4] parameter(0)  i = s32[2] parameter(1)  ROOT r = f32[2,2] dynamic-slice(p, i), dynamic_slice_sizes={2,2}"},
		{"slice of one index", "", "p = f32[4,4] parameter(0)  i = s32[2] parameter(1)  ROOT r = f32[2,3] dynamic-slice(p, i), dynamic_slice_sizes={2,2}", "its operands make f32[2,2]", ""},
		{"rng of other precision", "", "a = bf16[] parameter(0)  ROOT r = f32[4] rng(a, a), distribution=rng_uniform", "operand 0 is bf16[], want a scalar", ""},
		{"features", "", "x = f32[2,3] parameter(0)  s = f32[2] parameter(1)  o = f32[3] parameter(2)  ROOT r = (f32[2,3], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.1, feature_index=1", "operand 1 is f32[2], want floating-point numbers as in f32[3]", "x = f32[2,3] parameter(0)  s = f32[3] parameter(1)  o = f32[3] parameter(2)  ROOT r = (f32[2,3], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.1, feature_index=1"},
		{"rng", "", "a = s32[] parameter(0)  ROOT r = s32[4] rng(a, a), distribution=rng_normal", "want floating-point numbers of a normal distribution", "a = f32[] parameter(0)  ROOT r = f32[4] rng(a, a), distribution=rng_normal"},
		{"rng bounds", "", "a = f32[] parameter(0)  ROOT r = s32[4] rng(a, a), distribution=rng_uniform", "operand 0 is f32[], want a scalar", ""},
		{"rng state", "", "ROOT r = u64[3] rng-get-and-update-state(), delta=1", "its operands make u64[2]", "ROOT r = u64[2] rng-get-and-update-state(), delta=1"},
		{"stochastic", "", "x = f32[4] parameter(0)  b = u16[4] parameter(1)  ROOT r = bf16[4] stochastic-convert(x, b)", "want floating-point numbers and as many random bits", "x = f32[4] parameter(0)  b = u32[4] parameter(1)  ROOT r = bf16[4] stochastic-convert(x, b)"},
		{"size", "", "x = f32[4] parameter(0)  n = s32[] parameter(1)  ROOT r = f32[2,2] dynamic-reshape(x, n)", "1 size", "x = f32[4] parameter(0)  n = s32[] parameter(1)  ROOT r = f32[2,2] dynamic-reshape(x, n, n)"},
		{"windows", "", "x = f32[1,8,2] parameter(0)  k = f32[3,2,4] parameter(1)  ROOT r = f32[1,6,4] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f", "its windows have size 2 in dimension 0, the kernel f32[3,2,4]", "x = f32[1,8,2] parameter(0)  k = f32[3,2,4] parameter(1)  ROOT r = f32[1,6,4] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f"},
		{"no windows", "", "x = f32[1,8,2] parameter(0)  k = f32[3,2,4] parameter(1)  ROOT r = f32[1,6,4] convolution(x, k), dim_labels=b0f_0io->b0f", "its windows have 0 dimensions, b0f_0io->b0f has 1 in space", ""},
		{"infeed", "", "p = f32[] parameter(0)  ROOT r = (f32[4], token[]) infeed(p)", "operand 0 is f32[], want a token", "t = token[] after-all()  ROOT r = (f32[4], token[]) infeed(t)"},
		{"outfeed", "", "p = f32[4] parameter(0)  t = token[] after-all()  ROOT r = token[] outfeed(p, t), outfeed_shape=f32[5]{0}", "its operand is f32[4], outfeed_shape says f32[5]", "p = f32[4] parameter(0)  t = token[] after-all()  ROOT r = token[] outfeed(p, t), outfeed_shape=f32[4]{0}"},
		{"dependency", "", two + "ROOT r = f32[4] add-dependency(p, q)", "operand 1 is f32[4], want a token", "p = f32[4] parameter(0)  t = token[] after-all()  ROOT r = f32[4] add-dependency(p, t)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := check(t, tt.header, tt.body); err == nil || !strings.HasPrefix(err.Error(), "in.hlo:") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with a place and %q", err, tt.want)
			}
			if tt.fixed != "" {
				if err := check(t, tt.header, tt.fixed); err != nil {
					t.Errorf("mended: %v", err)
				}
			}
		})
	}
}

// TestLateBinding reads a call whose second operand comes with an update.
func TestLateBinding(t *testing.T) {
	const program = two + `s = ((f32[4]), (), u32[]) async-start(p), calls=%s
  u = ((f32[4], f32[4]), f32[4], u32[]) async-update(s, q)
  ROOT r = f32[4] async-done(u)`
	const both = "both { a = f32[4] parameter(0)  b = f32[4] parameter(1)  ROOT c = f32[4] add(a, b) }\n"
	for callee, want := range map[string]string{"both": "", "twice": "has operands (f32[4], f32[4]), what it calls takes (f32[4])"} {
		src := "HloModule m\n" + helpers + both + "ENTRY main {\n" + strings.ReplaceAll(program, "%s", callee) + "\n}\n"
		m, err := hlo.Parse("in.hlo", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(m); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", callee, err, want)
		}
	}
}

// TestCarriedStart goes on in a loop's body with what was started before it.
func TestCarriedStart(t *testing.T) {
	const program = `HloModule m
` + helpers + `
body { s = (((f32[4]), f32[4], u32[])) parameter(0)
  a = ((f32[4]), f32[4], u32[]) get-tuple-element(s), index=0
  d = f32[4] async-done(a)
  n = ((f32[4]), f32[4], u32[]) async-start(d), calls=twice
  ROOT r = (((f32[4]), f32[4], u32[])) tuple(n) }
cond { s = (((f32[4]), f32[4], u32[])) parameter(0)  ROOT r = pred[] constant(false) }
ENTRY main { p = f32[4] parameter(0)
  a = ((f32[4]), f32[4], u32[]) async-start(p), calls=twice
  t = (((f32[4]), f32[4], u32[])) tuple(a)
  w = (((f32[4]), f32[4], u32[])) while(t), body=body, condition=cond
  b = ((f32[4]), f32[4], u32[]) get-tuple-element(w), index=0
  ROOT r = f32[4] async-done(b) }
`
	m, err := hlo.Parse("in.hlo", []byte(program))
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(m); err != nil {
		t.Error(err)
	}
}
