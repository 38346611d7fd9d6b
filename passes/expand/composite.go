package expand

import (
	"math"

	"ppc/ir"
	"ppc/ir/facts"
	"ppc/passes/pass"
)

// A composition lowers an op of the dialect chlo to StableHLO ops that compute the
// same to the precision of the element type, as chlo-legalize-to-stablehlo does.
type composition func(c *composer, op *ir.Op) []*ir.Value

// compositions has a row for every kind that is [ir.Composite], for those of its ops
// that are decomposed ([ir.Op.Decomposes]).
var compositions = map[ir.Kind]composition{
	ir.Acos:      real1((*composer).acos),
	ir.Acosh:     real1((*composer).acosh),
	ir.Asin:      real1((*composer).asin),
	ir.Asinh:     real1((*composer).asinh),
	ir.Atan:      any1(func(c *composer, x *ir.Value) *ir.Value { return c.b.Binary(ir.Atan2, x, c.like(x, 1)) }),
	ir.Atanh:     real1((*composer).atanh),
	ir.ChloTan:   any1(func(c *composer, x *ir.Value) *ir.Value { return c.b.Unary(ir.Tan, x) }),
	ir.Cosh:      real1((*composer).cosh),
	ir.Digamma:   real1((*composer).digamma),
	ir.Erf:       real1((*composer).erf),
	ir.ErfInv:    real1((*composer).erfInv),
	ir.Erfc:      real1((*composer).erfc),
	ir.IsInf:     any1(func(c *composer, x *ir.Value) *ir.Value { return c.equals(c.b.Unary(ir.Abs, x), math.Inf(1)) }),
	ir.IsNegInf:  any1(func(c *composer, x *ir.Value) *ir.Value { return c.equals(x, math.Inf(-1)) }),
	ir.IsPosInf:  any1(func(c *composer, x *ir.Value) *ir.Value { return c.equals(x, math.Inf(1)) }),
	ir.Lgamma:    real1((*composer).lgamma),
	ir.NextAfter: (*composer).nextAfter,
	ir.Sinh:      real1((*composer).sinh),
	ir.Square:    any1(func(c *composer, x *ir.Value) *ir.Value { return c.b.Mul(x, x) }),
	ir.TopK:      (*composer).topK,
}

// A composer appends the ops of a composition.
type composer struct {
	b    *ir.Builder
	wide bool // the element type is f64: more terms
	err  error
}

// any1 is the composition of a function of one operand of any type.
func any1(f func(c *composer, x *ir.Value) *ir.Value) composition {
	return func(c *composer, op *ir.Op) []*ir.Value { return []*ir.Value{f(c, op.Operands[0])} }
}

// real1 is that of a function of real numbers, which is computed in f32 or f64.
func real1(f func(c *composer, x *ir.Value) *ir.Value) composition {
	return func(c *composer, op *ir.Op) []*ir.Value {
		x := op.Operands[0]
		elem := x.Type.Elem
		as := ir.F32
		if elem == ir.F64 {
			as, c.wide = ir.F64, true
		}
		return []*ir.Value{c.b.Convert(f(c, c.b.Convert(x, as)), elem)}
	}
}

// real2 is that of one of two operands.
func real2(f func(c *composer, x, y *ir.Value) *ir.Value) composition {
	return func(c *composer, op *ir.Op) []*ir.Value {
		y := op.Operands[1]
		return real1(func(c *composer, x *ir.Value) *ir.Value { return f(c, x, c.b.Convert(y, x.Type.Elem)) })(c, op)
	}
}

// compose returns the results of op, which is [ir.Composite], computed by the ops
// that it appends to b.
func compose(b *ir.Builder, op *ir.Op) ([]*ir.Value, error) {
	if op.Unread() {
		return op.Results, pass.Errorf(op, "%s: elements of type %s are not computed with", op.Name(), op.Operands[0].Type)
	}
	c := &composer{b: b}
	vs := compositions[op.Kind](c, op)
	for i, v := range op.Results {
		vs[i].Sharding = v.Sharding
	}
	return vs, c.err
}

// like is v in the type of x.
func (c *composer) like(x *ir.Value, v float64) *ir.Value {
	s := c.b.Splat(ir.Tensor(x.Type.Elem), v)
	if x.Type.Rank() == 0 {
		return s
	}
	return c.b.Broadcast(s, x.Type.Shape)
}

func (c *composer) plus(x *ir.Value, v float64) *ir.Value { return c.b.Add(x, c.like(x, v)) }

func (c *composer) times(x *ir.Value, v float64) *ir.Value { return c.b.Mul(x, c.like(x, v)) }

func (c *composer) compare(direction string, x *ir.Value, v float64) *ir.Value {
	return c.b.Compare(direction, x, c.like(x, v))
}

func (c *composer) equals(x *ir.Value, v float64) *ir.Value { return c.compare("EQ", x, v) }

func (c *composer) neg(x *ir.Value) *ir.Value { return c.b.Unary(ir.Negate, x) }

// polynomial is the one in x with the given coefficients, the highest first.
func (c *composer) polynomial(x *ir.Value, coefficients ...float64) *ir.Value {
	p := c.like(x, coefficients[0])
	for _, k := range coefficients[1:] {
		p = c.plus(c.b.Mul(p, x), k)
	}
	return p
}

// largest is where x² leaves the range of its type.
func (c *composer) largest() float64 {
	if c.wide {
		return math.Sqrt(math.MaxFloat64) / 2
	}
	return math.Sqrt(math.MaxFloat32) / 2
}

// asin(x) = 2 atan2(x, 1 + sqrt(1 - x²))
func (c *composer) asin(x *ir.Value) *ir.Value {
	return c.times(c.b.Binary(ir.Atan2, x, c.plus(c.chord(x), 1)), 2)
}

// acos(x) = 2 atan2(sqrt(1 - x²), 1 + x), and pi of -1
func (c *composer) acos(x *ir.Value) *ir.Value {
	v := c.times(c.b.Binary(ir.Atan2, c.chord(x), c.plus(x, 1)), 2)
	return c.b.Select(c.equals(x, -1), c.like(x, math.Pi), v)
}

// chord is sqrt(1 - x²), exact near 1.
func (c *composer) chord(x *ir.Value) *ir.Value {
	return c.b.Unary(ir.Sqrt, c.b.Mul(c.plus(c.neg(x), 1), c.plus(x, 1)))
}

// asinh(x) = sign(x) log(1 + |x| + x² / (1 + sqrt(x² + 1))), and
// sign(x) log(2 |x|) of large numbers
func (c *composer) asinh(x *ir.Value) *ir.Value {
	b := c.b
	m := b.Unary(ir.Abs, x)
	large := c.compare("GE", m, c.largest())
	y := b.Select(large, c.like(x, 1), m)
	s := b.Mul(y, y)
	small := b.Unary(ir.LogPlusOne, b.Add(y, b.Div(s, c.plus(b.Unary(ir.Sqrt, c.plus(s, 1)), 1))))
	v := b.Select(large, c.plus(b.Unary(ir.Log, m), math.Ln2), small)
	return b.Mul(b.Unary(ir.Sign, x), v)
}

// acosh(x) = log(1 + y + sqrt(y (y + 2))) with y = x - 1, log(2 x) of large
// numbers, and NaN below 1
func (c *composer) acosh(x *ir.Value) *ir.Value {
	b := c.b
	large := c.compare("GE", x, c.largest())
	y := c.plus(b.Select(large, c.like(x, 1), x), -1)
	small := b.Unary(ir.LogPlusOne, b.Add(y, b.Unary(ir.Sqrt, b.Mul(y, c.plus(y, 2)))))
	v := b.Select(large, c.plus(b.Unary(ir.Log, x), math.Ln2), small)
	return b.Select(c.compare("LT", x, 1), c.like(x, math.NaN()), v)
}

// atanh(x) = (log(1 + x) - log(1 - x)) / 2
func (c *composer) atanh(x *ir.Value) *ir.Value {
	return c.times(c.b.Sub(c.b.Unary(ir.LogPlusOne, x), c.b.Unary(ir.LogPlusOne, c.neg(x))), 0.5)
}

// cosh(x) = exp(x + log(1/2)) + exp(-x + log(1/2)), in range as long as it is
func (c *composer) cosh(x *ir.Value) *ir.Value { return c.b.Add(c.half(x), c.half(c.neg(x))) }

// half is exp(x) / 2.
func (c *composer) half(x *ir.Value) *ir.Value {
	return c.b.Unary(ir.Exponential, c.plus(x, -math.Ln2))
}

// sinh(x) = (e + e / (e + 1)) / 2 with e = exp(x) - 1 where |x| < 1, and the
// difference of exponentials elsewhere
func (c *composer) sinh(x *ir.Value) *ir.Value {
	b := c.b
	e := b.Unary(ir.ExponentialMinusOne, x)
	near := c.times(b.Add(e, b.Div(e, c.plus(e, 1))), 0.5)
	return b.Select(c.compare("LT", b.Unary(ir.Abs, x), 1), near, b.Sub(c.half(x), c.half(c.neg(x))))
}

// The coefficients of erf and erfc are those of the Cephes library, for each
// precision.
var (
	erfSmall32 = []float64{7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2, 1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710}
	erfcNear32 = []float64{2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1, 6.210004621745983e-1, -4.944515323274145e-1, 3.404879937665872e-1,
		-2.741127028184656e-1, 5.638259427386472e-1}
	erfcFar32 = []float64{-1.047766399936249e+1, 1.297719955372516e+1, -7.495518717768503, 2.921019019210786, -1.015265279202700, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1}

	erfSmall64 = []float64{9.60497373987051638749, 9.00260197203842689217e+1, 2.23200534594684319226e+3, 7.00332514112805075473e+3, 5.55923013010394962768e+4}
	erfUnder64 = []float64{1, 3.35617141647503099647e+1, 5.21357949780152679795e+2, 4.59432382970980127987e+3, 2.26290000613890934246e+4, 4.92673942608635921086e+4}
	erfcNear64 = []float64{2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e+1, 1.96520832956077098242e+2, 5.26445194995477358631e+2,
		9.34528527171957607540e+2, 1.02755188689515710272e+3, 5.57535335369399327526e+2}
	erfcUnder64 = []float64{1, 1.32281951154744992508e+1, 8.67072140885989742329e+1, 3.54937778887819891062e+2, 9.75708501743205489753e+2, 1.82390916687909736289e+3, 2.24633760818710981792e+3,
		1.65666309194161350182e+3, 5.57535340817727675546e+2}
	erfcFar64      = []float64{5.64189583547755073984e-1, 1.27536670759978104416, 5.01905042251180477414, 6.16021097993053585195, 7.40974269950448939160, 2.97886665372100240670}
	erfcFarUnder64 = []float64{1, 2.26052863220117276590, 9.39603524938001434673, 1.20489539808096656605e+1, 1.70814450747565897222e+1, 9.60896809063285878198, 3.36907645100081516050}
)

// erf is odd: near zero x times a polynomial of x², elsewhere 1 - erfc.
func (c *composer) erf(x *ir.Value) *ir.Value {
	far := c.plus(c.neg(c.erfcFar(x)), 1)
	return c.b.Select(c.compare("LT", c.b.Unary(ir.Abs, x), 1), c.erfNear(x), far)
}

func (c *composer) erfc(x *ir.Value) *ir.Value {
	return c.b.Select(c.compare("LT", c.b.Unary(ir.Abs, x), 1), c.plus(c.neg(c.erfNear(x)), 1), c.erfcFar(x))
}

// erfNear is erf where |x| < 1.
func (c *composer) erfNear(x *ir.Value) *ir.Value {
	s := c.b.Mul(x, x)
	if c.wide {
		return c.b.Mul(x, c.b.Div(c.polynomial(s, erfSmall64...), c.polynomial(s, erfUnder64...)))
	}
	return c.b.Mul(x, c.polynomial(s, erfSmall32...))
}

// erfcFar is erfc where |x| >= 1: exp(-x²) times a rational function of |x|,
// and 2 less that below zero.
func (c *composer) erfcFar(x *ir.Value) *ir.Value {
	b := c.b
	m := b.Unary(ir.Abs, x)
	e := b.Unary(ir.Exponential, c.neg(b.Mul(x, x)))
	var v *ir.Value
	if c.wide {
		near := b.Div(c.polynomial(m, erfcNear64...), c.polynomial(m, erfcUnder64...))
		m = b.Binary(ir.Minimum, m, c.like(m, 1e10)) // so that no power is infinite
		far := b.Div(c.polynomial(m, erfcFar64...), c.polynomial(m, erfcFarUnder64...))
		v = b.Mul(e, b.Select(c.compare("LT", m, 8), near, far))
	} else {
		q := b.Div(c.like(m, 1), m)
		s := b.Mul(q, q)
		v = b.Mul(b.Mul(e, q), b.Select(c.compare("LT", m, 2), c.polynomial(s, erfcNear32...), c.polynomial(s, erfcFar32...)))
	}
	v = b.Select(c.equals(e, 0), c.like(v, 0), v)
	return b.Select(c.compare("LT", x, 0), c.plus(c.neg(v), 2), v)
}

// The coefficients of erf_inv are those of M. Giles, Approximating the erfinv
// function, for each precision.
var (
	erfInvNear32 = []float64{2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941}
	erfInvFar32  = []float64{-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682}
	erfInvNear64 = []float64{-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
		6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
		1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
		0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356}
	erfInvMiddle64 = []float64{2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06,
		2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
		0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635}
	erfInvFar64 = []float64{-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
		2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972227537039e-06, -1.9681778105531670567e-05,
		7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977, 4.8499064014085844221}
)

// erfInv is x times a polynomial of w = -log(1 - x²) where that is small, of its
// root where it is not, and infinite at 1 and -1.
func (c *composer) erfInv(x *ir.Value) *ir.Value {
	b := c.b
	w := c.neg(b.Add(b.Unary(ir.LogPlusOne, x), b.Unary(ir.LogPlusOne, c.neg(x)))) // exact near 1, too
	root := b.Unary(ir.Sqrt, w)
	var p *ir.Value
	if c.wide {
		far := b.Select(c.compare("LT", w, 16), c.polynomial(c.plus(root, -3.25), erfInvMiddle64...), c.polynomial(c.plus(root, -5), erfInvFar64...))
		p = b.Select(c.compare("LT", w, 6.25), c.polynomial(c.plus(w, -3.125), erfInvNear64...), far)
	} else {
		p = b.Select(c.compare("LT", w, 5), c.polynomial(c.plus(w, -2.5), erfInvNear32...), c.polynomial(c.plus(root, -3), erfInvFar32...))
	}
	return b.Select(c.equals(b.Unary(ir.Abs, x), 1), c.times(x, math.Inf(1)), b.Mul(x, p))
}

// The coefficients of the Lanczos approximation of the gamma function for g = 7.
const (
	lanczosG    = 7.0
	lanczosBase = 0.99999999999980993227684700473478
)

var lanczos = []float64{676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894, -176.61502916214059906584551354,
	12.507343278686904814458936853, -0.13857109526572011689554707, 9.984369578019570859563e-6, 1.50563273514931155834e-7}

// gammaParts is what lgamma and digamma have in common: whether x < 1/2 is
// reflected, z = x - 1 of the larger of x and 1 - x, the sum of the Lanczos
// coefficients over z + i, its derivative, z + g + 1/2 and the logarithm of that.
func (c *composer) gammaParts(x *ir.Value) (reflected, z, sum, slope, t, log *ir.Value) {
	b := c.b
	reflected = c.compare("LT", x, 0.5)
	z = b.Select(reflected, c.neg(x), c.plus(x, -1))
	sum, slope = c.like(x, lanczosBase), c.like(x, 0)
	for i, k := range lanczos {
		d := c.plus(z, float64(i+1))
		term := b.Div(c.like(x, k), d)
		sum = b.Add(sum, term)
		slope = b.Sub(slope, b.Div(term, d))
	}
	t = c.plus(z, lanczosG+0.5)
	log = c.plus(b.Unary(ir.LogPlusOne, c.times(z, 1/(lanczosG+0.5))), math.Log(lanczosG+0.5))
	return
}

// lgamma(x) = log(sqrt(2 pi)) + (z + 1/2) log(t) - t + log(sum), and below 1/2
// log(pi / |sin(pi x)|) less that of 1 - x.
func (c *composer) lgamma(x *ir.Value) *ir.Value {
	b := c.b
	reflected, z, sum, _, t, log := c.gammaParts(x)
	y := b.Mul(b.Sub(c.plus(z, 0.5), b.Div(t, log)), log)
	y = b.Add(c.plus(y, math.Log(2*math.Pi)/2), b.Unary(ir.Log, sum))
	// The sine of pi x is that of the distance to the next integer.
	m := b.Unary(ir.Abs, x)
	d := b.Sub(m, b.Unary(ir.Floor, m))
	d = b.Select(c.compare("GT", d, 0.5), c.plus(c.neg(d), 1), d)
	sine := b.Unary(ir.Log, b.Unary(ir.Sine, c.times(d, math.Pi)))
	sine = b.Select(c.compare("LT", d, 1e-9), c.plus(b.Unary(ir.Log, d), math.Log(math.Pi)), sine) // that of a subnormal number times pi is not exact
	finite := b.Unary(ir.IsFinite, sine)
	mirror := b.Select(finite, b.Sub(c.plus(c.neg(sine), math.Log(math.Pi)), y), c.neg(sine))
	v := b.Select(reflected, mirror, y)
	return b.Select(c.equals(m, math.Inf(1)), c.like(x, math.Inf(1)), v)
}

// digamma(x) = log(t) + slope / sum - g / t, and below 1/2 that of 1 - x less
// pi / tan(pi x): NaN at negative integers, and -Inf at 0, as in XLA.
func (c *composer) digamma(x *ir.Value) *ir.Value {
	b := c.b
	reflected, _, sum, slope, t, log := c.gammaParts(x)
	y := b.Sub(b.Add(log, b.Div(slope, sum)), b.Div(c.like(t, lanczosG), t))
	nearest := b.Unary(ir.Floor, c.plus(x, 0.5))
	d := c.times(b.Sub(x, nearest), math.Pi)
	mirror := b.Sub(y, b.Div(c.times(b.Unary(ir.Cosine, d), math.Pi), b.Unary(ir.Sine, d)))
	v := b.Select(reflected, mirror, y)
	pole := b.Binary(ir.And, c.compare("LE", x, 0), b.Compare("EQ", x, b.Unary(ir.Floor, x)))
	v = b.Select(pole, c.like(x, math.NaN()), v)
	return b.Select(c.equals(x, 0), c.like(x, math.Inf(-1)), v)
}

// nextAfter counts the bits of a number up where its magnitude grows, else
// down: those of a type order its numbers of one sign.
func (c *composer) nextAfter(op *ir.Op) []*ir.Value {
	b := c.b
	x, y := op.Operands[0], op.Operands[1]
	bits := map[int]ir.DType{4: ir.UI4, 8: ir.UI8, 16: ir.UI16, 32: ir.UI32, 64: ir.UI64}[x.Type.Elem.Bits()]
	if bits == ir.InvalidDType {
		c.err = pass.Errorf(op, "%s: there are no integers of the %d bits of %s", op.Name(), x.Type.Elem.Bits(), x.Type.Elem)
		return []*ir.Value{x}
	}
	t := x.Type.WithElem(bits)
	cast := func(v *ir.Value, t *ir.Type) *ir.Value {
		return b.Emit(ir.BitcastConvert, []*ir.Value{v}, nil, nil, []*ir.Type{t}).Result()
	}
	n := cast(x, t)
	zero := c.equals(x, 0)
	grows := b.Compare("EQ", b.Compare("LT", x, y), c.compare("GT", x, 0))
	next := cast(b.Select(grows, c.plus(n, 1), b.Sub(n, c.like(n, 1))), x.Type)
	least := cast(c.like(n, 1), x.Type)
	least = b.Select(c.compare("LT", y, 0), c.neg(least), least)
	v := b.Select(zero, least, next)
	v = b.Select(b.Compare("EQ", x, y), y, v)
	nan := b.Binary(ir.Or, b.Compare("NE", x, x), b.Compare("NE", y, y))
	return []*ir.Value{b.Select(nan, b.Add(x, y), v)}
}

// topK sorts the elements with their places and takes the first.
func (c *composer) topK(op *ir.Op) []*ir.Value {
	b, x := c.b, op.Operands[0]
	last, k := x.Type.Rank()-1, op.Int("k")
	places := b.Iota(x.Type.WithElem(ir.I32), last)
	more := new(ir.Block)
	for _, elem := range []ir.DType{x.Type.Elem, x.Type.Elem, ir.I32, ir.I32} {
		b.Func.NewArg(more, ir.Tensor(elem), "")
	}
	in := b.In(more)
	gt := in.Compare("GT", more.Args[0], more.Args[1])
	if x.Type.Elem.IsFloat() {
		gt.Def.Attrs.Set("compare_type", ir.HLOEnum("comparison_type", "TOTALORDER"))
	}
	in.Emit(ir.Return, []*ir.Value{gt}, nil, nil, nil)
	sorted := b.Emit(ir.Sort, []*ir.Value{x, places}, ir.AttrsOf(facts.Named("dimension", ir.I64Attr(last)), facts.Named("is_stable", ir.Bool(true))), []*ir.Block{more}, nil).Results
	start, limit := make([]int, last+1), append([]int{}, x.Type.Shape...)
	limit[last] = k
	return []*ir.Value{b.Slice(sorted[0], start, limit), b.Slice(sorted[1], start, limit)}
}
