package syntax

import (
	"fmt"
)

// A Message is the template of an error or a warning: offender first, then found and
// wanted, with numbers and names. A test finds an example for each under
// testdata/golden/lang.
type Message string

// Format fills the template in.
func (m Message) Format(args ...any) string { return fmt.Sprintf(string(m), args...) }

// Reading.
const (
	ErrOpen      Message = "cannot be read: %s"
	ErrInclude   Message = "include %q: %s"
	ErrCycle     Message = "include cycle: %s"
	ErrFiles     Message = "more than %d files are included"
	errUTF8      Message = "byte 0x%02x is not UTF-8"
	errCharacter Message = "%s is %s"
	errDepth     Message = "brackets nest %d deep, at most %d are read"
	errSize      Message = "the file has %d bytes, at most %d are read"
	errLong      Message = "more than %d operators in a row"
	errEnd       Message = "the file ends where %s should stand"
	errToken     Message = "unexpected %s, want %s"
	errQuote     Message = "a text that does not end on its line"
	errNumber    Message = "%s is not within the range of numbers"
	errSeparator Message = "want a new line or ; before this"
	errComma     Message = "want a comma before this"
	errArrow     Message = "rule for %s without ->"
	errArgName   Message = "only a name can stand before :"
	errElse      Message = "else after the last else"
	ErrSetForm   Message = "--set %s: want block.key=value"
	ErrSetBlock  Message = "--set: there is no block %s; want one of %s"
)
