// Package facts answers questions about ops and values that several passes ask:
// what is linear or neutral, what a region reads, how often a loop runs, which
// attribute has what. Nothing here changes a program.
package facts

import _ "ppc/ir/dialect" // the op table
