package syntax

import (
	"slices"
	"strings"

	"ppc/internal/diag"
	"ppc/ir"
)

// A Span is a stretch of one line of a source. The zero span is no place.
type Span struct {
	Src       *Source
	Line, Col int
	Len       int
}

// Pos is the start of s as the IR records it.
func (s Span) Pos() ir.Pos {
	if s.Src == nil {
		return ir.Pos{}
	}
	return ir.Pos{File: s.Src.Name, Line: s.Line, Col: s.Col}
}

// An Expr is an expression of the source.
type Expr interface{ At() Span }

type (
	// A NumberLit is a number.
	NumberLit struct {
		Span
		Value float64
		text  string
		ok    bool // it is within the range of numbers
	}
	// A TextLit is a text in quotes.
	TextLit struct {
		Span
		Text string
	}
	// A NameRef is a name where it is used.
	NameRef struct {
		Span
		Name string
	}
	// A ListLit is [a, b, …].
	ListLit struct {
		Span
		Items []Arg
	}
	// A RulesLit is {axis -> mesh axis, …}.
	RulesLit struct {
		Span
		Rules []Rule
	}
	// A UnaryExpr is an operator before its operand.
	UnaryExpr struct {
		Span
		Op string
		X  Expr
	}
	// A BinaryExpr is an operator between its operands.
	BinaryExpr struct {
		Span
		Op   string
		X, Y Expr
	}
	// A CallExpr is a call: Fn is a name, or a call that returns a function.
	CallExpr struct {
		Span
		Fn   Expr
		Args []Arg
	}
)

// At is s: what holds a span is at a place.
func (s Span) At() Span { return s }

// An Arg is one argument of a call or item of a list: value, name: value, or
// value -> to.
type Arg struct {
	Span
	Name  *NameRef // nil without a name
	Value Expr
	To    Expr // nil without an arrow

	// For the converter: what is before the colon, and whether a comma
	// follows.
	key   Expr
	comma bool
}

// A Rule maps logical axes to mesh axes.
type Rule struct {
	Span
	Axes, Mesh []NameRef

	// For the converter: the names between arrows, and how the rule ends.
	parts   [][]NameRef
	endLine int
	sep     bool
}

// A TypeExpr is elem[axes]; elem is "" and axes nil where they were not written.
type TypeExpr struct {
	Span
	Elem string
	Open bool // has brackets
	Axes []NameRef
}

// A Setting is one key = value of a block; body is what follows in braces.
type Setting struct {
	Span
	Key      string
	Value    Expr
	Body     []Setting
	Override bool // from the command line
	Order    int  // in its block
}

// A Block is a block of settings.
type Block struct {
	Span
	Kind    string
	Entries []Setting
}

// A ShardBlock is shard weights or shard activations.
type ShardBlock struct {
	Span
	Of    string
	Rules []Rule
}

// A Param is a parameter of a function.
type Param struct {
	Span
	Name string
	Typ  *TypeExpr // nil where not written
	Def  Expr      // nil without a default
}

// A FuncDecl is an fn, a layer or a model.
type FuncDecl struct {
	Span   // of the name
	Kind   string
	Name   string
	Params []Param
	Body   []Stmt
}

// A Stmt is one statement of a body.
type Stmt interface{ At() Span }

type (
	// A WeightStmt declares parameters of a layer or model.
	WeightStmt struct {
		Span
		Names  []NameRef
		Typ    *TypeExpr
		Init   Expr     // nil without one
		Frozen bool     // not trained
		File   *TextLit // nil without one
	}
	// A ReturnStmt ends a body.
	ReturnStmt struct {
		Span
		Args []Arg
	}
	// An IfStmt is if with its branches.
	IfStmt struct {
		Span
		Branches []branch // the first whose condition holds counts
		Alt      []Stmt   // else
	}
	// An AssignStmt names the results of an expression.
	AssignStmt struct {
		Span
		Names []NameRef
		Value Expr
	}
)

// A branch is the statements under one condition.
type branch struct {
	Cond Expr
	Body []Stmt
}

// An IncludeDecl is include "path".
type IncludeDecl struct {
	Span
	Path string
}

// A File is a parsed source.
type File struct {
	Src      *Source
	Includes []IncludeDecl
	Blocks   []Block
	Shards   []ShardBlock
	Funcs    []*FuncDecl
}

// Function reports whether a parameter of an fn takes a function.
func (p *Param) Function() bool { return p.Typ != nil && !p.Typ.Open && p.Typ.Elem == "function" }

// JoinNames is the names ns, separated by commas.
func JoinNames(ns []NameRef) string {
	ss := make([]string, len(ns))
	for i, n := range ns {
		ss[i] = n.Name
	}
	return strings.Join(ss, ", ")
}

// Text is t as it is written.
func (t *TypeExpr) Text() string {
	if !t.Open {
		return t.Elem
	}
	return t.Elem + "[" + JoinNames(t.Axes) + "]"
}

// Static reports whether a parameter of a layer is known when the layer is
// stacked, such as window: number.
func (q *Param) Static() bool {
	return q.Typ != nil && !q.Typ.Open && slices.Contains([]string{"number", "bool", "text"}, q.Typ.Elem)
}

// Text is what the source has at s, or other where that is long.
func (s Span) Text(other string) string {
	const most = 40
	if s.Src == nil || s.Len > most {
		return other
	}
	line := []rune(diag.LineOf(s.Src.Text, s.Line))
	if s.Col < 1 || s.Col-1+s.Len > len(line) {
		return other
	}
	return strings.TrimSpace(string(line[s.Col-1 : s.Col-1+s.Len]))
}
