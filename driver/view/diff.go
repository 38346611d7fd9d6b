package view

import (
	"regexp"
	"slices"
	"strings"
)

// stems are lines by what they begin with: the names of results and the op.
func stems(lines []line) []line {
	out := make([]line, len(lines))
	for i, l := range lines {
		out[i].key, _, _ = strings.Cut(l.key, "(")
		if result, rest, is := strings.Cut(l.key, " = "); is && strings.HasPrefix(result, "%") {
			end := strings.IndexAny(rest, " (")
			if end < 0 {
				end = len(rest)
			}
			out[i].key = result + " = " + rest[:end]
		}
	}
	return out
}

// A piece is some words of an edited line: added '+', removed '-' or as before ' '.
type piece struct {
	mark byte
	text string
}

var word = regexp.MustCompile(`%?[\w.$]+|[^\w.$]`)

// pieces are the words in which two lines differ, and those between. Numbers of
// values are not compared.
func pieces(before, after string) []piece {
	old, now := wordsOf(before), wordsOf(after)
	var out []piece
	add := func(mark byte, words []line) {
		if len(words) == 0 {
			return
		}
		if n := len(out); n == 0 || out[n-1].mark != mark {
			out = append(out, piece{mark: mark})
		}
		for _, w := range words {
			out[len(out)-1].text += w.text
		}
	}
	a, b := 0, 0
	for _, m := range append(matches(old, now), [2]int{len(old), len(now)}) {
		add('-', old[a:m[0]])
		add('+', now[b:m[1]])
		if m[1] < len(now) {
			add(' ', now[m[1]:m[1]+1])
		}
		a, b = m[0]+1, m[1]+1
	}
	return out
}

func wordsOf(text string) []line {
	words := word.FindAllString(text, -1)
	out := make([]line, len(words))
	for i, w := range words {
		out[i] = line{text: w, key: numbers.ReplaceAllString(w, "%$1")}
	}
	return out
}

// matches are the places of lines that are the same in two texts, in order. Lines
// that stand once in both, in the same order, are the same line; between two of
// these that holds of lines that stand once there, and so on. Where none do, a
// short piece has the most lines in common that it can.
func matches(before, after []line) [][2]int {
	var out [][2]int
	n := min(len(before), len(after))
	head := 0
	for head < n && before[head].key == after[head].key {
		out = append(out, [2]int{head, head})
		head++
	}
	tail := 0
	for tail < n-head && before[len(before)-1-tail].key == after[len(after)-1-tail].key {
		tail++
	}
	out = append(out, shifted(between(before[head:len(before)-tail], after[head:len(after)-tail]), head, head)...)
	for ; tail > 0; tail-- {
		out = append(out, [2]int{len(before) - tail, len(after) - tail})
	}
	return out
}

const most = 1 << 18 // places in the table that common fills

// between is matches where neither the first nor the last lines are the same.
func between(before, after []line) [][2]int {
	if len(before) == 0 || len(after) == 0 {
		return nil
	}
	pairs := anchors(before, after)
	if len(pairs) == 0 {
		if len(before) <= most/len(after) {
			return common(before, after)
		}
		return nil
	}
	var out [][2]int
	a, b := 0, 0
	for _, m := range append(pairs, [2]int{len(before), len(after)}) {
		out = append(out, shifted(matches(before[a:m[0]], after[b:m[1]]), a, b)...)
		if m[0] < len(before) {
			out = append(out, m)
		}
		a, b = m[0]+1, m[1]+1
	}
	return out
}

func shifted(pairs [][2]int, a, b int) [][2]int {
	for i := range pairs {
		pairs[i][0] += a
		pairs[i][1] += b
	}
	return pairs
}

// common is the longest list of lines that both have in the same order.
func common(before, after []line) [][2]int {
	width := len(after) + 1
	length := make([]int32, (len(before)+1)*width) // of the list for what follows both places
	for i := len(before) - 1; i >= 0; i-- {
		for k := len(after) - 1; k >= 0; k-- {
			if before[i].key == after[k].key {
				length[i*width+k] = length[(i+1)*width+k+1] + 1
			} else {
				length[i*width+k] = max(length[(i+1)*width+k], length[i*width+k+1])
			}
		}
	}
	var out [][2]int
	for i, k := 0, 0; i < len(before) && k < len(after); {
		switch {
		case before[i].key == after[k].key:
			out = append(out, [2]int{i, k})
			i, k = i+1, k+1
		case length[(i+1)*width+k] >= length[i*width+k+1]:
			i++
		default:
			k++
		}
	}
	return out
}

// anchors are places of lines that stand once in each text: of these the longest
// list that is in order in both.
func anchors(before, after []line) [][2]int {
	type places struct{ a, b, countA, countB int }
	at := make(map[string]*places)
	for i, l := range before {
		if at[l.key] == nil {
			at[l.key] = new(places)
		}
		at[l.key].a, at[l.key].countA = i, at[l.key].countA+1
	}
	for i, l := range after {
		if p := at[l.key]; p != nil {
			p.b, p.countB = i, p.countB+1
		}
	}
	var pairs [][2]int
	for i, l := range before {
		if p := at[l.key]; p.a == i && p.countA == 1 && p.countB == 1 {
			pairs = append(pairs, [2]int{p.a, p.b})
		}
	}
	return increasing(pairs)
}

// increasing is the longest list of pairs, which are in order of their first, that
// is in order of the second.
func increasing(pairs [][2]int) [][2]int {
	var ends []int // by length - 1, the pair that ends the list whose end is least
	previous := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p[1], func(e, b int) int { return pairs[e][1] - b })
		previous[i] = -1
		if n > 0 {
			previous[i] = ends[n-1]
		}
		ends = append(ends[:n], append([]int{i}, ends[min(n+1, len(ends)):]...)...)
	}
	var out [][2]int
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = previous[i] {
			out = append(out, pairs[i])
		}
	}
	slices.Reverse(out)
	return out
}
