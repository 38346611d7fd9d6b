package syntax

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

func ParseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, noInteger(err, text)
	}
	return n, nil
}

// noInteger says why found, of which strconv says err, is no integer of 64 bits.
func noInteger(err error, found string) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s does not fit in 64 bits", found)
	}
	return fmt.Errorf("want an integer, found %s", found)
}

// ParseList reads numbers with a separator between them.
func ParseList(text, sep string) ([]int, error) {
	var xs []int
	for _, part := range strings.Split(text, sep) {
		n, err := ParseInt(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		xs = append(xs, n)
	}
	return xs, nil
}

// ParseInts reads {0,1}.
func ParseInts(text string) ([]int, error) {
	parts, err := Elements(text)
	if err != nil {
		return nil, err
	}
	xs := make([]int, len(parts))
	for i, p := range parts {
		if xs[i], err = ParseInt(p); err != nil {
			return nil, err
		}
	}
	return xs, nil
}

// ParseLists reads {{0,1},{2,3}}.
func ParseLists(text string) ([][]int, error) {
	parts, err := Elements(text)
	if err != nil {
		return nil, err
	}
	lists := make([][]int, len(parts))
	for i, p := range parts {
		if lists[i], err = ParseInts(p); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

// Elements splits a text in braces at the commas that are in no other brackets.
func Elements(text string) ([]string, error) {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, fmt.Errorf("want a list in braces, found %s", text)
	}
	s := &Scanner{Src: text, Pos: 1, End: len(text) - 1}
	var parts []string
	for s.Peek() != 0 && s.Err == nil {
		if len(parts) > 0 {
			s.Expect(",")
		}
		parts = append(parts, strings.TrimSpace(s.Value()))
	}
	if s.Err != nil {
		return nil, errors.New(s.Err.Msg)
	}
	return parts, nil
}

// IsPermutation reports whether xs are 0 to n-1, each once.
func IsPermutation(xs []int, n int) bool {
	if len(xs) != n {
		return false
	}
	seen := make([]bool, n)
	for _, x := range xs {
		if x < 0 || x >= n || seen[x] {
			return false
		}
		seen[x] = true
	}
	return true
}

// Index reads the place of a value in nested tuples: {1,0}, or {1,0,}.
func (s *Scanner) Index() []int {
	var xs []int
	for s.Expect("{"); s.Err == nil && !s.Accept("}"); {
		if xs = append(xs, s.Integer()); !s.Accept(",") {
			s.Expect("}")
			return xs
		}
	}
	return xs
}
