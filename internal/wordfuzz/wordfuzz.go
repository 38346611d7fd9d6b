// Package wordfuzz edits texts by words, for the fuzz targets of what reads
// text: far more of what it makes is read than of texts whose bytes are changed.
package wordfuzz

import (
	"maps"
	"slices"
	"strings"
)

// Words are the words of some texts by class.
type Words map[byte][]string

// Of is the words of texts, each once.
func Of(texts ...string) Words {
	w := make(Words)
	seen := make(map[string]bool)
	for _, text := range texts {
		for _, t := range split(text) {
			if word := t.word; !seen[word] {
				seen[word] = true
				w[class(word)] = append(w[class(word)], word)
			}
		}
	}
	return w
}

// A token is a word and the space before it.
type token struct{ space, word string }

// class is what may stand for each other in most places: names, numbers, and
// words with the same sign in front.
func class(word string) byte {
	switch c := word[0]; {
	case letter(c):
		return 'a'
	case c >= '0' && c <= '9':
		return '0'
	case len(word) > 1:
		return c
	}
	return '.'
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func split(text string) []token {
	var out []token
	for i := 0; i < len(text); {
		start := i
		for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t') {
			i++
		}
		if i == len(text) {
			break
		}
		at := i
		for i++; i < len(text) && (letter(text[at]) || strings.IndexByte("%@#!^0123456789", text[at]) >= 0) &&
			(letter(text[i]) || text[i] >= '0' && text[i] <= '9' || text[i] == '.' || text[i] == '-' && letter(text[at])); i++ {
		}
		out = append(out, token{text[start:at], text[at:i]})
	}
	return out
}

// The bounds of the edits of one text, and of the words that they leave.
const (
	maxEdits  = 8
	maxTokens = 1 << 13
)

// Edit is text after edits, each of six bytes: which edit, where, and what with.
// There are none of an empty edits, and text is as it was.
func (w Words) Edit(text string, edits []byte) string {
	if len(edits) < 6 {
		return text
	}
	ts := split(text)
	for n := 0; len(edits) >= 6 && len(ts) > 0 && n < maxEdits && len(ts) < maxTokens; n++ {
		at, with := (int(edits[1])<<8|int(edits[2]))%len(ts), int(edits[3])<<8|int(edits[4])
		ts = w.edit(ts, edits[0]%9, at, with, int(edits[5]))
		edits = edits[6:]
	}
	var b strings.Builder
	for _, t := range ts {
		b.WriteString(t.space + t.word)
	}
	if strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}

func (w Words) edit(ts []token, kind byte, at, with, more int) []token {
	t := &ts[at]
	other := with % len(ts)
	switch kind {
	case 0: // another word of its class
		if of := w[class(t.word)]; len(of) > 0 {
			t.word = of[with%len(of)]
		}
	case 1: // another word of its class from the text
		var of []string
		for _, o := range ts {
			if class(o.word) == class(t.word) {
				of = append(of, o.word)
			}
		}
		t.word = of[with%len(of)]
	case 2:
		ts[at].word, ts[other].word = ts[other].word, ts[at].word
	case 3: // any number in place of the next
		for ; at < len(ts); at++ {
			if class(ts[at].word) == '0' {
				ts[at].word = numbers[with%len(numbers)]
				break
			}
		}
	case 4:
		return slices.Delete(ts, at, at+1)
	case 5: // any word more
		all := slices.Sorted(maps.Keys(w))
		if len(all) > 0 {
			of := w[all[more%len(all)]]
			return slices.Insert(ts, at, token{" ", of[with%len(of)]})
		}
	case 6: // one line again, or away
		i, j := line(ts, at)
		if more%3 == 0 {
			return slices.Delete(ts, i, j)
		}
		k, _ := line(ts, other)
		return slices.Insert(ts, k, slices.Clone(ts[i:j])...)
	case 7, 8: // what one pair of brackets holds in place of what another does, or beside it
		i, j := brackets(ts, at)
		k, l := brackets(ts, other)
		if kind == 8 {
			return slices.Insert(ts, i, slices.Clone(ts[k:l])...)
		}
		return slices.Replace(ts, i, j, slices.Clone(ts[k:l])...)
	}
	return ts
}

var numbers = []string{"0", "1", "2", "3", "4", "8", "-1", "-2", "7", "64", "100", "1048576", "2147483648", "4294967296", "9223372036854775807", "-9223372036854775808", "1e30", "0x7FC00000"}

// line is the tokens of the line that has ts[at].
func line(ts []token, at int) (start, end int) {
	for start = at; start > 0 && !strings.Contains(ts[start].space, "\n"); start-- {
	}
	for end = at + 1; end < len(ts) && !strings.Contains(ts[end].space, "\n"); end++ {
	}
	return start, end
}

// brackets is the tokens within the first pair of brackets from at on; none where
// there is no pair.
func brackets(ts []token, at int) (start, end int) {
	depth := 0
	start = -1
	for i := at; i < len(ts); i++ {
		switch ts[i].word {
		case "(", "[", "{", "<":
			if depth++; depth == 1 && start < 0 {
				start = i + 1
			}
		case ")", "]", "}", ">":
			if depth--; depth == 0 && start >= 0 {
				return start, i
			}
			depth = max(depth, 0)
		}
	}
	return at, at
}

// Nothing is edits that leave a text as it is, for a fuzzer to begin with.
var Nothing = []byte{2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0}
