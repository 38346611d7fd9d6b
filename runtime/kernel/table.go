package kernel

import "ppc/ir"

// of builds a Func from a row by the element type of operand 0.
func of(rows map[ir.Kind]byType) func(op *ir.Op) (Func, error) {
	return func(op *ir.Op) (Func, error) {
		t := op.Operands[0].Type.Elem
		return orMissing(rows[op.Kind].forType(t, op.Results[0].Type.Elem), op, t)
	}
}

func fixed(f Func) func(op *ir.Op) (Func, error) {
	return func(*ir.Op) (Func, error) { return f, nil }
}

func inArithmetic(op *ir.Op) int { return arithmetic(op.Results[0].Type.Elem).Size() }
func inComplex128(*ir.Op) int    { return ir.C128.Size() }

var table = makeTable()

func makeTable() map[ir.Kind]row {
	useTier(fastest)
	rows := map[ir.Kind]row{
		ir.IsFinite:        {build: of(map[ir.Kind]byType{ir.IsFinite: {ir.F32: isFinite[float32], ir.F64: isFinite[float64]}})},
		ir.Imag:            {build: of(map[ir.Kind]byType{ir.Imag: {ir.F32: clearAll, ir.F64: clearAll, ir.C64: partOf[float32](1), ir.C128: partOf[float64](1)}})},
		ir.Real:            {build: of(map[ir.Kind]byType{ir.Real: {ir.F32: copyAll, ir.F64: copyAll, ir.C64: partOf[float32](0), ir.C128: partOf[float64](0)}})},
		ir.ComplexOp:       {build: of(map[ir.Kind]byType{ir.ComplexOp: {ir.F32: complexOf[float32], ir.F64: complexOf[float64]}})},
		ir.Convert:         {build: buildConvert, inPlace: []int{0}},
		ir.BitcastConvert:  {build: buildBitcast, inPlace: []int{0}},
		ir.ReducePrecision: {build: buildReducePrecision, inPlace: []int{0}},
		ir.Compare:         {build: buildCompare},
		ir.Select:          {build: buildSelect, inPlace: []int{1, 2}},
		ir.Clamp:           {build: buildClamp, inPlace: []int{1}},

		ir.Iota:               {build: buildIota},
		ir.RngBitGenerator:    {build: buildRngBits},
		ir.BroadcastInDim:     {build: buildBroadcast},
		ir.Concatenate:        {build: buildConcatenate},
		ir.DynamicSlice:       {build: buildDynamicSlice},
		ir.DynamicUpdateSlice: {build: buildDynamicUpdateSlice, inPlace: []int{0}},
		ir.Pad:                {build: buildPad},
		ir.Reshape:            {build: fixed(copyAll), inPlace: []int{0}},
		ir.Reverse:            {build: buildReverse},
		ir.Slice:              {build: buildSlice},
		ir.Transpose:          {build: buildTranspose},
		ir.Gather:             {build: buildGather},
		ir.Scatter:            {region: buildScatter, inPlace: []int{0}},

		ir.DotGeneral:       {build: buildDot, widens: inArithmetic},
		ir.RaggedDot:        {build: buildRagged, widens: inArithmetic},
		ir.Convolution:      {build: buildConvolution, widens: inArithmetic},
		ir.Reduce:           {region: buildReduce},
		ir.ReduceWindow:     {region: buildReduceWindow},
		ir.SelectAndScatter: {region: buildSelectAndScatter},
		ir.Sort:             {region: buildSort},

		ir.Cholesky:        {build: buildCholesky, widens: inComplex128},
		ir.TriangularSolve: {build: buildTriangularSolve, widens: inComplex128},
		ir.FFT:             {build: buildFFT, widens: inComplex128},
	}
	for k := range unaries {
		rows[k] = row{build: of(unaries), inPlace: []int{0}}
	}
	for k := range binaries {
		rows[k] = row{build: of(binaries), inPlace: []int{0, 1}}
	}
	return rows
}

func buildClamp(op *ir.Op) (Func, error) {
	t := op.Operands[1].Type.Elem
	return orMissing(clamps.forType(t, t), op, t)
}
