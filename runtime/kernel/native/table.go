package native

import (
	"fmt"

	"ppc/ir"
	"ppc/lower/fuse"
)

var unaries = map[ir.Kind]func(c *code, x value) value{
	ir.Negate: negateF32, ir.Abs: absF32, ir.Sqrt: sqrtF32, ir.Rsqrt: rsqrtF32, ir.Exponential: expF32, ir.ExponentialMinusOne: expm1F32, ir.Log: logF32, ir.Tanh: tanhF32, ir.Logistic: logisticF32,
}

var binaries = map[ir.Kind]func(c *code, x, y value) value{
	ir.Add: addF32, ir.Subtract: subtractF32, ir.Multiply: multiplyF32, ir.Divide: divideF32, ir.Maximum: maximumF32, ir.Minimum: minimumF32,
}

// comparisons by direction; swapped ones are those of the other order.
var comparisons = map[string]struct {
	predicate byte
	swapped   bool
}{
	"EQ": {isEqual, false}, "NE": {isUnequal, false}, "LT": {isLess, false}, "LE": {isLessEqual, false}, "GT": {isLess, true}, "GE": {isLessEqual, true},
}

// Has reports whether a function is [Chain.Unary]'s or [Chain.Binary]'s.
func Has(k ir.Kind) bool { return unaries[k] != nil || binaries[k] != nil }

// Unary is a function of x.
func (c *Chain) Unary(k ir.Kind, x Node) Node {
	f := unaries[k]
	return c.apply(func(m *code, v []value) value { return f(m, v[0]) }, fmt.Sprint(int(k)), false, x)
}

// Binary is a function of x and y, which are of one level or constants.
func (c *Chain) Binary(k ir.Kind, x, y Node) Node {
	f := binaries[k]
	return c.apply(func(m *code, v []value) value { return f(m, v[0], v[1]) }, fmt.Sprint(int(k)), false, x, y)
}

// Compare is whether x is equal to, less than … y, both of elements: a condition.
func (c *Chain) Compare(direction string, x, y Node) Node {
	f := comparisons[direction]
	if f.swapped {
		x, y = y, x
	}
	return c.apply(func(m *code, v []value) value { return m.compare(f.predicate, v[0], v[1]) }, direction, true, x, y)
}

// Select is x where the condition holds, else y, of elements.
func (c *Chain) Select(condition, x, y Node) Node {
	return c.apply(func(m *code, v []value) value { return m.pick(v[0], v[1], v[2]) }, "select", false, condition, x, y)
}

// apply is a function of nodes, which no other has the name of. It has a number for each row where an argument does.
func (c *Chain) apply(call func(m *code, x []value) value, name string, condition bool, args ...Node) Node {
	level := fuse.Full
	for _, a := range args {
		level = max(level, c.nodes[a].level)
	}
	return c.add(node{kind: isCall, level: level, condition: condition, call: call, name: name, args: args})
}
