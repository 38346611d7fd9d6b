package scalar

// MergeSort sorts x, with spare room of its length. It is stable, ends whatever less says, and asks it n log n times.
func MergeSort(x, spare []int, less func(a, b int) bool) {
	if len(x) < 2 {
		return
	}
	mid := len(x) / 2
	MergeSort(x[:mid], spare[:mid], less)
	MergeSort(x[mid:], spare[mid:], less)
	copy(spare, x)
	a, b := spare[:mid], spare[mid:]
	for i := range x {
		if len(a) == 0 || len(b) > 0 && less(b[0], a[0]) {
			x[i], b = b[0], b[1:]
		} else {
			x[i], a = a[0], a[1:]
		}
	}
}
