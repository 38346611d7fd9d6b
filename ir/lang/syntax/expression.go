package syntax

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// exprNode is an expression. Its grammar, in the notation of grammar.go:
//
//	Expr    = And ( '||' And )*
//	And     = Cmp ( '&&' Cmp )*
//	Cmp     = Sum ( ( '==' | '!=' | '<=' | '>=' | '<' | '>' ) Sum )?
//	Sum     = Product ( ( '+' | '-' ) Product )*
//	Product = Unary ( ( '*' | '/' | '%' ) Unary )*
//	Unary   = ( '-' | '!' )* Postfix
//	Postfix = Primary ( '(' Args ')' )*
//	Primary = Number | String | Ident | Keyword | '(' Expr ')' | '[' Args ']' | '{' Rule* '}'
//	Args    = ( Expr ( ':' Expr )? ( '->' Expr )? ','? )*
type exprNode struct {
	Pos, EndPos lexer.Position
	tree        Expr // its spans have no source yet
}

// errChain is a chain of more than maxChain operators. The parser stops there,
// since all later walks recurse along a chain.
var errChain = errors.New("too many operators in a row")

// Parse reads an expression; it has no match where none begins.
func (n *exprNode) Parse(lex *lexer.PeekingLexer) error {
	t := lex.Peek()
	if !beginsExpr(t) {
		return participle.NextMatch
	}
	p := &exprParser{lex: lex}
	n.Pos = t.Pos
	x, err := p.binary(0)
	n.tree, n.EndPos = x, p.end
	return err
}

func beginsExpr(t *lexer.Token) bool {
	switch t.Type {
	case numberToken, stringToken, identToken, keywordToken:
		return true
	}
	return slices.Contains([]string{"-", "!", "(", "[", "{"}, t.Value)
}

// levels are the binary operators, loosest first.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}}

// comparisons is the level that does not chain.
const comparisons = 2

// An exprParser reads one expression.
type exprParser struct {
	lex *lexer.PeekingLexer
	end lexer.Position // of the last token
}

func (p *exprParser) next() *lexer.Token {
	t := p.lex.Next()
	p.end = t.Pos
	p.end.Column += utf8.RuneCountInString(t.Value)
	return t
}

func (p *exprParser) at(text string) bool {
	t := p.lex.Peek()
	return t.Value == text && t.Type != stringToken && !t.EOF()
}

func (p *exprParser) accept(text string) bool {
	if !p.at(text) {
		return false
	}
	p.next()
	return true
}

// want is the error that something else is here.
func (p *exprParser) want(what string) error {
	return &participle.UnexpectedTokenError{Unexpected: *p.lex.Peek(), Expect: what}
}

// Span is from a position to the end of the last token. On several lines it
// has no length yet.
func (p *exprParser) span(from lexer.Position) Span {
	s := Span{Line: from.Line, Col: from.Column}
	if p.end.Line == from.Line {
		s.Len = max(1, p.end.Column-from.Column)
	}
	return s
}

func (p *exprParser) tooLong(n int) error {
	if n <= maxChain {
		return nil
	}
	return &chainError{p.lex.Peek().Pos}
}

// A chainError is errChain at a place.
type chainError struct{ pos lexer.Position }

func (e *chainError) Error() string { return errChain.Error() }

func (e *chainError) Message() string { return errChain.Error() }

func (e *chainError) Position() lexer.Position { return e.pos }

func (p *exprParser) binary(level int) (Expr, error) {
	if level == len(levels) {
		return p.unary()
	}
	from := p.lex.Peek().Pos
	x, err := p.binary(level + 1)
	for n := 1; err == nil; n++ {
		op := p.lex.Peek()
		if op.Type == stringToken || !slices.Contains(levels[level], op.Value) || level == comparisons && n > 1 {
			break
		}
		if err := p.tooLong(n); err != nil {
			return nil, err
		}
		p.next()
		var y Expr
		if y, err = p.binary(level + 1); err == nil {
			x = &BinaryExpr{p.span(from), op.Value, x, y}
		}
	}
	return x, err
}

func (p *exprParser) unary() (Expr, error) {
	var signs []*lexer.Token
	for p.at("-") || p.at("!") {
		signs = append(signs, p.next())
		if err := p.tooLong(len(signs)); err != nil {
			return nil, err
		}
	}
	x, err := p.postfix()
	if err != nil {
		return nil, err
	}
	for i := len(signs) - 1; i >= 0; i-- {
		x = &UnaryExpr{p.span(signs[i].Pos), signs[i].Value, x}
	}
	return x, nil
}

func (p *exprParser) postfix() (Expr, error) {
	from := p.lex.Peek().Pos
	x, err := p.primary()
	for n := 1; err == nil && p.accept("("); n++ {
		if err := p.tooLong(n); err != nil {
			return nil, err
		}
		var args []Arg
		if args, err = p.args(")"); err == nil {
			x = &CallExpr{p.span(from), x, args}
		}
	}
	return x, err
}

func (p *exprParser) primary() (Expr, error) {
	t := p.lex.Peek()
	from := t.Pos
	switch {
	case t.Type == numberToken:
		p.next()
		v, err := strconv.ParseFloat(t.Value, 64)
		return &NumberLit{p.span(from), v, t.Value, err == nil}, nil
	case t.Type == stringToken:
		p.next()
		return &TextLit{p.span(from), unquote(t.Value)}, nil
	case t.Type == identToken || t.Type == keywordToken:
		p.next()
		if after := p.lex.Peek(); t.Type == keywordToken && after.Type == identToken && after.Pos.Line == t.Pos.Line { // a statement or a block
			return nil, &participle.UnexpectedTokenError{Unexpected: *t, Expect: "an expression"}
		}
		return &NameRef{p.span(from), t.Value}, nil
	case p.accept("("):
		x, err := p.binary(0)
		if err == nil && !p.accept(")") {
			err = p.want(`")"`)
		}
		return x, err
	case p.accept("["):
		items, err := p.args("]")
		return &ListLit{p.span(from), items}, err
	case p.accept("{"):
		rules, err := p.rules()
		return &RulesLit{p.span(from), rules}, err
	}
	return nil, p.want("an expression")
}

// args reads arguments or items to the closing bracket.
func (p *exprParser) args(end string) ([]Arg, error) {
	var out []Arg
	for !p.accept(end) {
		if !beginsExpr(p.lex.Peek()) {
			return nil, p.want(strconv.Quote(end))
		}
		a, err := p.arg()
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (p *exprParser) arg() (a Arg, err error) {
	if a.Value, err = p.binary(0); err != nil {
		return a, err
	}
	a.Span = a.Value.At()
	if p.accept(":") {
		a.key = a.Value
		if a.Value, err = p.binary(0); err != nil {
			return a, err
		}
	}
	if p.accept("->") {
		if a.To, err = p.binary(0); err != nil {
			return a, err
		}
	}
	a.comma = p.accept(",")
	return a, nil
}

// rules reads the rules of constrain to the closing brace: axis -> mesh axes,
// ended by ; or the end of the line, or by the last name before an arrow.
func (p *exprParser) rules() ([]Rule, error) {
	var out []Rule
	for !p.accept("}") {
		from := p.lex.Peek().Pos
		r := Rule{}
		for len(r.parts) == 0 || p.accept("->") {
			names, err := p.ruleNames()
			if err != nil {
				return nil, err
			}
			r.parts = append(r.parts, names)
		}
		r.Span = p.span(from)
		r.endLine = p.end.Line
		r.sep = p.accept(";")
		out = append(out, r)
	}
	return out, nil
}

func (p *exprParser) ruleNames() ([]NameRef, error) {
	var out []NameRef
	for len(out) == 0 || p.accept(",") {
		t := p.lex.Peek()
		if t.Type != identToken && t.Type != keywordToken && t.Type != stringToken {
			return nil, p.want("a name")
		}
		p.next()
		out = append(out, NameRef{p.span(t.Pos), strings.Trim(t.Value, `"`)})
	}
	return out, nil
}
