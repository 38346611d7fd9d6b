// Package directives reads what the test files of StableHLO and Shardy say besides
// their programs: where a file is split, which errors are expected, and the ops of
// the test dialects in the form that only upstream's tools print.
package directives

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Split cuts a file at its lines "// -----". Every segment but the first begins
// with an empty line in place of that one.
func Split(text string) []string {
	segments := []string{}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimRight(line, "\r\n") == "// -----" {
			segments = append(segments, b.String())
			b.Reset()
			line = "\n"
		}
		b.WriteString(line)
	}
	return append(segments, b.String())
}

// An ExpectedError is an error that a unit says it has.
type ExpectedError struct {
	Line int // of the segment
	Text string
}

var expectedError = regexp.MustCompile(`//\s*expected-error(?:-re)?\s*(@(?:[+-]\d+|above|below))?\s*(?:\d+\s*)?\{\{(.*)\}\}`)

// ExpectedErrors are the errors that the comments expected-error of a source
// speak of.
func ExpectedErrors(source string) []ExpectedError {
	var es []ExpectedError
	n := 0
	for line := range strings.Lines(source) {
		n++
		for _, m := range expectedError.FindAllStringSubmatch(line, -1) {
			at := n
			switch m[1] {
			case "":
			case "@above":
				at--
			case "@below":
				at++
			default:
				offset, _ := strconv.Atoi(m[1][1:])
				at += offset
			}
			es = append(es, ExpectedError{at, m[2]})
		}
	}
	return es
}

const (
	valuePattern = `(%[\w.$-]+(?:#\d+)?)`
	typePattern  = `(tensor<(?:[^<>]|<[^<>]*>)*>)`
)

var (
	constCheck = regexp.MustCompile(`check\.(expect_\w+_const) ` + valuePattern + `,\s*(dense<[^>]*>)\s*:\s*` + typePattern + `(?:\s*\{([^}]*)\})?`)
	pairCheck  = regexp.MustCompile(`check\.(expect_\w+) ` + valuePattern + `,\s*` + valuePattern + `((?:,\s*\w+ = [\w.]+)*)\s*:\s*` + typePattern + `(?:,\s*` + typePattern + `)?`)
	probe      = regexp.MustCompile(`interpreter\.probe ` + valuePattern + `,\s*(probe_id = "[^"]*")\s*:\s*` + typePattern)
	probeCheck = regexp.MustCompile(`check\.expect_serialized_eq ` + valuePattern + `,\s*(probe_id = "[^"]*"(?:,\s*iter = \d+)?)\s*:\s*` + typePattern)
)

// Generic rewrites the pretty form of the check ops, whose dialect is
// upstream's own for tests, to the generic one.
func Generic(src string) string {
	src = constCheck.ReplaceAllStringFunc(src, func(s string) string {
		m := constCheck.FindStringSubmatch(s)
		attrs := "value = " + m[3] + " : " + m[4]
		if strings.TrimSpace(m[5]) != "" {
			attrs += ", " + m[5]
		}
		return fmt.Sprintf("\"check.%s\"(%s) {%s} : (%s) -> ()", m[1], m[2], attrs, m[4])
	})
	src = pairCheck.ReplaceAllStringFunc(src, func(s string) string {
		m := pairCheck.FindStringSubmatch(s)
		return fmt.Sprintf("\"check.%s\"(%s, %s) {%s} : (%s, %s) -> ()", m[1], m[2], m[3], strings.TrimPrefix(m[4], ","), m[5], m[5])
	})
	src = probe.ReplaceAllString(src, `"interpreter.probe"($1) {$2} : ($3) -> $3`)
	return probeCheck.ReplaceAllString(src, `"check.expect_serialized_eq"($1) {$2} : ($3) -> ()`)
}
