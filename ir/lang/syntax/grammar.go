package syntax

import (
	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The grammar is the field tags of the types in this file, from fileNode down.
// It takes a little more than the language: separators are optional here and
// demanded by the converter, which says better what is missing. One token of
// lookahead decides everything. Expressions are read by hand, in
// expression.go: they are most of a program, and the levels of operators as
// types cost ten times the time and memory.

// fileNode is a source file.
type fileNode struct {
	Items []*itemNode `parser:"@@*"`
}

// itemNode is one block, or an include.
type itemNode struct {
	Pos    lexer.Position
	EndPos lexer.Position

	Include  *includeNode  `parser:"(   @@"`
	Settings *settingsNode `parser:"  | @@"`
	Shard    *shardNode    `parser:"  | @@"`
	Func     *funcNode     `parser:"  | @@ )"`
	Sep      bool          `parser:"@';'?"`
}

// includeNode is include "file.pp".
type includeNode struct {
	Pos  lexer.Position
	Path string `parser:"'include' @String"`
}

// settingsNode is a block of key = value entries.
type settingsNode struct {
	Pos     lexer.Position
	Kind    string       `parser:"@( 'types' | 'axes' | 'mesh' | 'pipeline' | 'train' | 'hardware' )"`
	Entries []*entryNode `parser:"'{' @@* '}'"`
}

// entryNode is one key = value.
type entryNode struct {
	Pos    lexer.Position
	EndPos lexer.Position
	Key    string       `parser:"@( Ident | Keyword | String ) '='"`
	Value  *exprNode    `parser:"@@"`
	Body   []*entryNode `parser:"( '{' @@* '}' )?"`
	Sep    bool         `parser:"@( ',' | ';' )?"`
}

// shardNode is shard weights { axis, axis -> mesh axis, … }.
type shardNode struct {
	Pos   lexer.Position
	Of    *nameNode   `parser:"'shard' @@"`
	Rules []*ruleNode `parser:"'{' @@* '}'"`
}

// ruleNode is a, b -> x, y; it also takes a -> x, b -> y on one line.
type ruleNode struct {
	Pos    lexer.Position
	EndPos lexer.Position
	Parts  []*namesNode `parser:"@@ ( '->' @@ )*"`
	Sep    bool         `parser:"@';'?"`
}

type namesNode struct {
	Names []*nameNode `parser:"@@ ( ',' @@ )*"`
}

// nameNode is a name where it is used or declared.
type nameNode struct {
	Pos  lexer.Position
	Name string `parser:"@( Ident | Keyword | String )"`
}

// funcNode is an fn, a layer or a model.
type funcNode struct {
	Pos    lexer.Position
	Kind   string       `parser:"@( 'fn' | 'layer' | 'model' )"`
	Name   *nameNode    `parser:"@@"`
	Params []*paramNode `parser:"'(' @@* ')'"`
	Body   *bodyNode    `parser:"@@"`
}

// paramNode is one parameter: name, name: type, name: type = default.
type paramNode struct {
	Pos     lexer.Position
	EndPos  lexer.Position
	Name    string    `parser:"@Ident"`
	Type    *typeNode `parser:"( ':' @@ )?"`
	Default *exprNode `parser:"( '=' @@ )?"`
	Sep     bool      `parser:"@','?"`
}

// typeNode is f32[batch, seq], f32, or, of an fn's parameter, [batch, seq].
type typeNode struct {
	Pos    lexer.Position
	EndPos lexer.Position
	Elem   string      `parser:"@Ident?"`
	Open   bool        `parser:"( @'['"`
	Axes   []*axisNode `parser:"  @@* ']' )?"`
}

type axisNode struct {
	Pos    lexer.Position
	EndPos lexer.Position
	Name   string `parser:"@Ident"`
	Sep    bool   `parser:"@','?"`
}

type bodyNode struct {
	Pos   lexer.Position
	Stmts []*stmtNode `parser:"'{' @@*"`
	Close string      `parser:"@'}'"`
}

// stmtNode is one statement.
type stmtNode struct {
	Pos    lexer.Position
	EndPos lexer.Position

	Weight *weightNode `parser:"(   @@"`
	Return *returnNode `parser:"  | @@"`
	If     *ifNode     `parser:"  | @@"`
	Assign *assignNode `parser:"  | @@ )"`
	Sep    bool        `parser:"@';'?"`
}

// weightNode is param a, b: f32[embed] = ones frozen as "name". A variable may
// be called frozen: what assigns to one is the next statement.
type weightNode struct {
	Pos    lexer.Position
	Names  []*nameNode `parser:"'param' @@ ( ',' @@ )*"`
	Type   *typeNode   `parser:"':' @@"`
	Init   *exprNode   `parser:"( '=' @@ )?"`
	Frozen bool        `parser:"( (?! 'frozen' ( '=' | ',' ) ) @'frozen' )?"`
	File   *nameNode   `parser:"( 'as' @@ )?"`
	Late   *lateNode   `parser:"@@?"`
}

// lateNode is a part of a parameter that stands behind its name in files, and must not.
type lateNode struct {
	Pos    lexer.Position
	Init   *exprNode `parser:"  '=' @@"`
	Frozen bool      `parser:"| (?! 'frozen' ( '=' | ',' ) ) @'frozen'"`
}

type returnNode struct {
	Pos  lexer.Position
	Args []*returnArgNode `parser:"'return' @@ ( ',' @@ )*"`
}

type returnArgNode struct {
	Pos   lexer.Position
	Value *exprNode `parser:"@@"`
	Named *exprNode `parser:"( ':' @@ )?"`
}

type ifNode struct {
	Pos  lexer.Position
	Cond *exprNode   `parser:"'if' @@"`
	Then *bodyNode   `parser:"@@"`
	Else []*elseNode `parser:"@@*"`
}

// elseNode is else { … } or else if cond { … }. A list, not a chain, so that
// the parser does not recurse along it.
type elseNode struct {
	Pos  lexer.Position
	Cond *exprNode `parser:"'else' ( 'if' @@ )?"`
	Body *bodyNode `parser:"@@"`
}

type assignNode struct {
	Pos   lexer.Position
	Names []*nameNode `parser:"@@ ( ',' @@ )* '='"`
	Value *exprNode   `parser:"@@"`
}

var fileParser = participle.MustBuild[fileNode](
	participle.Lexer(tokenRules{}),
	participle.Elide("Comment", "Space"),
)

var entryParser = participle.MustBuild[entryNode](
	participle.Lexer(tokenRules{}),
	participle.Elide("Comment", "Space"),
)
