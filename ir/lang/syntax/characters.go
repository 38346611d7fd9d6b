package syntax

import (
	"fmt"
	"strings"
	"unicode"
)

// byteOrderMark may be at the start of a file, where it is ignored.
const byteOrderMark = '\ufeff'

// WithoutMark is a text without the byte order mark that it may begin with.
func WithoutMark(text []byte) string {
	return strings.TrimPrefix(string(text), string(byteOrderMark))
}

// A lookalike is a character that is taken for one of the language.
type lookalike struct{ name, ascii string }

// letters are the letters of other alphabets that look like Latin ones.
var letters = []struct{ alphabet, theirs, ascii string }{
	{"Cyrillic", "аАеЕоОрРсСуУхХіІѕЅјЈԁһԛԝкКмМтТвВнНзЗ", "aAeEoOpPcCyYxXiIsSjJdhqwkKmMtTbBhH33"},
	{"Greek", "αΑΒΕΖΗιΙκΚΜνΝοΟρΡΤυΥΧω", "aABEZHiIkKMvNoOpPTuYXw"},
}

// others are the other characters that look like those of the language, or like
// nothing.
var others = map[rune]lookalike{
	'\u00a0': {"a no-break space", " "}, '\u202f': {"a narrow no-break space", " "}, '\u3000': {"an ideographic space", " "}, '\u2003': {"an em space", " "}, '\u2002': {"an en space", " "},
	'\u2009': {"a thin space", " "}, '\u200a': {"a hair space", " "}, '\u2007': {"a figure space", " "}, '\u205f': {"a mathematical space", " "}, '\u2028': {"a line separator", "a new line"},
	'\u2029': {"a paragraph separator", "a new line"}, '\u0085': {"a next-line control", "a new line"}, '\u000b': {"a vertical tab", " "}, '\u000c': {"a form feed", "a new line"},
	'\u200b': {"a zero-width space", ""}, '\u200c': {"a zero-width non-joiner", ""}, '\u200d': {"a zero-width joiner", ""}, '\u2060': {"a word joiner", ""}, '\u00ad': {"a soft hyphen", ""},
	byteOrderMark: {"a byte order mark, which only the start of a file may have", ""},
	'“':           {"a quotation mark", `"`}, '”': {"a quotation mark", `"`}, '„': {"a quotation mark", `"`}, '‟': {"a quotation mark", `"`}, '«': {"a quotation mark", `"`}, '»': {"a quotation mark", `"`},
	'‘': {"a quotation mark", `"`}, '’': {"a quotation mark", `"`}, '\'': {"a single quote", `"`}, '`': {"a back quote", `"`},
	'−': {"a minus sign", "-"}, '–': {"an en dash", "-"}, '—': {"an em dash", "-"}, '‐': {"a hyphen", "-"}, '‑': {"a no-break hyphen", "-"},
	'×': {"a multiplication sign", "*"}, '·': {"a middle dot", "*"}, '⋅': {"a dot operator", "*"}, '÷': {"a division sign", "/"}, '∕': {"a division slash", "/"},
	'→': {"an arrow", "->"}, '⇒': {"an arrow", "->"}, '≤': {"a less-than-or-equal sign", "<="}, '≥': {"a greater-than-or-equal sign", ">="}, '≠': {"a not-equal sign", "!="},
	';': {"a Greek question mark", ";"}, '∶': {"a ratio sign", ":"}, '…': {"an ellipsis", "what stands for it"}, 'π': {"a Greek letter", "pi"},
}

// lookalikeOf is what c, which is no character of the language, is taken for.
func lookalikeOf(c rune) (lookalike, bool) {
	if l, ok := others[c]; ok {
		return l, true
	}
	if c >= '\uff01' && c <= '\uff5e' {
		return lookalike{"a full-width character", string(c - 0xfee0)}, true
	}
	for _, row := range letters {
		if i := strings.IndexRune(row.theirs, c); i >= 0 {
			n := len([]rune(row.theirs[:i]))
			return lookalike{"a " + row.alphabet + " letter", row.ascii[n : n+1]}, true
		}
	}
	return lookalike{}, false
}

// isOurs reports whether c may occur outside of strings and comments.
func isOurs(c rune) bool {
	return c < unicode.MaxASCII && (unicode.IsPrint(c) && c != '\'' && c != '`' || strings.ContainsRune("\t\r\n", c))
}

// character reports a character that is not the language's, what it looks like,
// and what to write.
func (r *Reporter) character(at Span, c rune) {
	shown := fmt.Sprintf("U+%04X", c)
	if unicode.IsPrint(c) {
		shown = fmt.Sprintf("%q (%s)", string(c), shown)
	}
	l, ok := lookalikeOf(c)
	switch {
	case !ok && unicode.IsLetter(c):
		r.Report(at, "names are made of a to z, A to Z, digits and _", errCharacter, shown, "a letter of another alphabet")
	case !ok && !unicode.IsPrint(c):
		r.Report(at, "leave it out", errCharacter, shown, "a character that is not seen")
	case !ok:
		r.Report(at, "leave it out, or put it in a text or a comment", errCharacter, shown, "no character of the language")
	case l.ascii == "":
		r.Report(at, "leave it out", errCharacter, shown, l.name)
	case l.ascii == " ":
		r.Report(at, "write a space", errCharacter, shown, l.name)
	default:
		r.Report(at, "write "+l.ascii, errCharacter, shown, l.name)
	}
}
