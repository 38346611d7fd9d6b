package lang

import "ppc/ir"

// A span is a stretch of one line of a source. The zero span is no place.
type span struct {
	src       *source
	line, col int
	len       int
}

// pos is the start of s as the IR records it.
func (s span) pos() ir.Pos {
	if s.src == nil {
		return ir.Pos{}
	}
	return ir.Pos{File: s.src.name, Line: s.line, Col: s.col}
}

// An expr is an expression of the source.
type expr interface{ at() span }

type (
	numberLit struct {
		span
		value float64
		text  string
		ok    bool // it is within the range of numbers
	}
	textLit struct {
		span
		text string
	}
	nameRef struct {
		span
		name string
	}
	listLit struct {
		span
		items []arg
	}
	rulesLit struct {
		span
		rules []rule
	}
	unaryExpr struct {
		span
		op string
		x  expr
	}
	binaryExpr struct {
		span
		op   string
		x, y expr
	}
	callExpr struct {
		span
		fn   expr
		args []arg
	}
)

func (s span) at() span { return s }

// An arg is one argument of a call or item of a list: value, name: value, or
// value -> to.
type arg struct {
	span
	name  *nameRef // nil without a name
	value expr
	to    expr // nil without an arrow

	// For the converter: what stands before the colon, and whether a comma
	// follows.
	key   expr
	comma bool
}

// A rule maps logical axes to mesh axes.
type rule struct {
	span
	axes, mesh []nameRef

	// For the converter: the names between arrows, and how the rule ends.
	parts   [][]nameRef
	endLine int
	sep     bool
}

// A typeExpr is elem[axes]; elem is "" and axes nil where they were not written.
type typeExpr struct {
	span
	elem string
	open bool // has brackets
	axes []nameRef
}

// A setting is one key = value of a block; body is what follows in braces.
type setting struct {
	span
	key      string
	value    expr
	body     []setting
	override bool // from the command line
	order    int  // in its block
}

// A block is a block of settings.
type block struct {
	span
	kind    string
	entries []setting
}

// A shardBlock is shard weights or shard activations.
type shardBlock struct {
	span
	of    string
	rules []rule
}

// A param is a parameter of a function.
type param struct {
	span
	name string
	typ  *typeExpr // nil where not written
	def  expr      // nil without a default
}

// A funcDecl is an fn, a layer or a model.
type funcDecl struct {
	span   // of the name
	kind   string
	name   string
	params []param
	body   []stmt
}

// A stmt is one statement of a body.
type stmt interface{ at() span }

type (
	weightStmt struct {
		span
		names  []nameRef
		typ    *typeExpr
		init   expr     // nil without one
		frozen bool     // not trained
		file   *textLit // nil without one
	}
	returnStmt struct {
		span
		args []arg
	}
	ifStmt struct {
		span
		branches []branch // the first whose condition holds counts
		alt      []stmt   // else
	}
	assignStmt struct {
		span
		names []nameRef
		value expr
	}
)

// A branch is the statements under one condition.
type branch struct {
	cond expr
	body []stmt
}

// An includeDecl is include "path".
type includeDecl struct {
	span
	path string
}

// A file is a parsed source.
type file struct {
	src      *source
	includes []includeDecl
	blocks   []block
	shards   []shardBlock
	funcs    []*funcDecl
}
