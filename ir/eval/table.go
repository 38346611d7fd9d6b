package eval

import (
	"math"

	"ppc/internal/elementary"
	"ppc/ir"
)

// A row says how an op is evaluated: exactly one of its functions is set.
type row struct {
	each each                             // elementwise
	one  func(e *exec) *tensor            // one result; what is verified does not fail
	run  func(e *exec) ([]*tensor, error) // anything
}

// table has a row for every kind that is not a terminator.
var table = map[ir.Kind]row{
	ir.Unknown: {run: unknown},

	ir.Abs:                 {each: absolute},
	ir.Cbrt:                {each: unaryOp{f: math.Cbrt, c: elementary.Cbrt}.each},
	ir.Ceil:                {each: unaryOp{f: math.Ceil}.each},
	ir.CountLeadingZeros:   {each: countLeadingZeros.each},
	ir.Cosine:              {each: unaryOp{f: elementary.CosReal, c: elementary.Cos}.each},
	ir.Exponential:         {each: unaryOp{f: elementary.ExpReal, c: elementary.Exp}.each},
	ir.ExponentialMinusOne: {each: exponentialMinusOne.each},
	ir.Floor:               {each: unaryOp{f: math.Floor}.each},
	ir.IsFinite:            {each: isFinite},
	ir.Log:                 {each: unaryOp{f: elementary.LogReal, c: elementary.Log}.each},
	ir.LogPlusOne:          {each: logPlusOne.each},
	ir.Logistic:            {each: logistic.each},
	ir.Negate:              {each: negate.each},
	ir.Not:                 {each: not.each},
	ir.PopulationCount:     {each: populationCount.each},
	ir.RoundNearestAfz:     {each: unaryOp{f: math.Round}.each},
	ir.RoundNearestEven:    {each: unaryOp{f: math.RoundToEven}.each},
	ir.Rsqrt:               {each: rsqrt.each},
	ir.Sign:                {each: sign.each},
	ir.Sine:                {each: unaryOp{f: elementary.SinReal, c: elementary.Sin}.each},
	ir.Sqrt:                {each: unaryOp{f: math.Sqrt, c: elementary.Sqrt}.each},
	ir.Tan:                 {each: unaryOp{f: elementary.TanReal, c: elementary.Tan}.each},
	ir.Tanh:                {each: unaryOp{f: math.Tanh, c: elementary.Tanh}.each},
	ir.Convert:             {each: convert},
	ir.BitcastConvert:      {one: bitcastConvert},
	ir.Imag:                {each: partOf(func(x float64) float64 { return 0 }, func(x complex128) float64 { return imag(x) })},
	ir.Real:                {each: partOf(func(x float64) float64 { return x }, func(x complex128) float64 { return real(x) })},
	ir.ReducePrecision:     {one: reducePrecision},

	ir.Add:                  {each: add.each},
	ir.And:                  {each: and.each},
	ir.Atan2:                {each: atan2.each},
	ir.ComplexOp:            {each: complexOf},
	ir.Divide:               {each: divide.each},
	ir.Maximum:              {each: maximum.each},
	ir.Minimum:              {each: minimum.each},
	ir.Multiply:             {each: multiply.each},
	ir.Or:                   {each: or.each},
	ir.Power:                {each: power.each},
	ir.Remainder:            {each: remainder.each},
	ir.ShiftLeft:            {each: shiftLeft.each},
	ir.ShiftRightArithmetic: {each: shiftRightArithmetic.each},
	ir.ShiftRightLogical:    {each: shiftRightLogical.each},
	ir.Subtract:             {each: subtract.each},
	ir.Xor:                  {each: xor.each},
	ir.Compare:              {each: compare},
	ir.Select:               {each: selectEach},
	ir.Clamp:                {each: clamp},

	ir.Acos:      {each: unaryOp{f: acos, c: elementary.Acos}.each},
	ir.Acosh:     {each: unaryOp{f: math.Acosh, c: elementary.Acosh}.each},
	ir.Asin:      {each: unaryOp{f: math.Asin, c: elementary.Asin}.each},
	ir.Asinh:     {each: unaryOp{f: math.Asinh, c: elementary.Asinh}.each},
	ir.Atan:      {each: unaryOp{f: math.Atan, c: elementary.Atan}.each},
	ir.Atanh:     {each: unaryOp{f: math.Atanh, c: elementary.Atanh}.each},
	ir.ChloTan:   {each: unaryOp{f: elementary.TanReal, c: elementary.Tan}.each},
	ir.Cosh:      {each: unaryOp{f: elementary.CoshReal, c: elementary.Cosh}.each},
	ir.Digamma:   {each: unaryOp{f: digamma}.each},
	ir.Erf:       {each: unaryOp{f: math.Erf}.each},
	ir.ErfInv:    {each: unaryOp{f: math.Erfinv}.each},
	ir.Erfc:      {each: unaryOp{f: math.Erfc}.each},
	ir.IsInf:     {each: isInfinite(0)},
	ir.IsNegInf:  {each: isInfinite(-1)},
	ir.IsPosInf:  {each: isInfinite(1)},
	ir.Lgamma:    {each: unaryOp{f: elementary.Lgamma}.each},
	ir.NextAfter: {each: nextAfter},
	ir.Sinh:      {each: unaryOp{f: elementary.SinhReal, c: elementary.Sinh}.each},
	ir.Square:    {each: square.each},
	ir.TopK:      {run: topK},

	ir.Constant:        {one: constant},
	ir.Iota:            {one: iota},
	ir.PartitionID:     {one: partitionID},
	ir.ReplicaID:       {one: replicaID},
	ir.RngBitGenerator: {run: rngBits},

	ir.BroadcastInDim:     {one: broadcastInDim},
	ir.Concatenate:        {one: concatenate},
	ir.DynamicSlice:       {one: dynamicSlice},
	ir.DynamicUpdateSlice: {one: dynamicUpdateSlice},
	ir.Gather:             {one: gather},
	ir.Pad:                {one: pad},
	ir.Reshape:            {one: reshape},
	ir.Reverse:            {one: reverse},
	ir.Scatter:            {run: scatter},
	ir.Slice:              {one: slice},
	ir.Transpose:          {one: transpose},

	ir.DotGeneral:       {run: dotGeneral},
	ir.RaggedDot:        {run: one(raggedDot)},
	ir.Convolution:      {run: convolution},
	ir.Reduce:           {run: reduce},
	ir.ReduceWindow:     {run: reduceWindow},
	ir.SelectAndScatter: {run: selectAndScatter},
	ir.Sort:             {run: sortOp},

	ir.Cholesky:        {one: cholesky},
	ir.TriangularSolve: {one: triangularSolve},
	ir.FFT:             {run: fft},

	ir.While:               {run: while},
	ir.Case:                {run: caseOp},
	ir.If:                  {run: ifOp},
	ir.Call:                {run: call},
	ir.CompositeCall:       {run: call},
	ir.OptimizationBarrier: {run: identity},
	ir.CustomCall:          {run: customCall},
	ir.TupleOp:             {one: tuple},
	ir.GetTupleElement:     {one: getTupleElement},

	ir.AllGather:           {run: allGather},
	ir.AllReduce:           {run: allReduce},
	ir.AllToAll:            {run: allToAll},
	ir.CollectiveBroadcast: {run: collectiveBroadcast},
	ir.CollectivePermute:   {run: collectivePermute},
	ir.ReduceScatter:       {run: reduceScatter},

	ir.ShardingConstraint: {run: identity},
	ir.Reshard:            {run: identity},
	ir.ManualComputation:  {run: manualComputation},
	ir.NamedComputation:   {run: namedComputation},
	ir.SdyConstant:        {one: constant},
	ir.DataFlowEdge:       {run: identity},
	ir.PropagationBarrier: {run: identity},
	ir.ShardingGroup:      {run: nothing},

	// A sharding does not change a value.
	ir.SdyAllGather:          {run: identity},
	ir.SdyAllSlice:           {run: identity},
	ir.SdyAllToAll:           {run: identity},
	ir.SdyCollectivePermute:  {run: identity},
	ir.SdyAllReduce:          {run: identity},
	ir.SdyReduceScatter:      {run: identity},
	ir.ReplicatedToUnreduced: {run: identity},
	ir.ShardedToUnreduced:    {run: identity},

	ir.PPPipeline:   {run: pipeline},
	ir.PPStack:      {run: stack},
	ir.PPScan:       {run: scan},
	ir.PPRotate:     {one: rotate},
	ir.PPCheckpoint: {run: checkpoint},
	ir.PPName:       {run: identity},
	ir.PPGather:     {each: convert},
}
