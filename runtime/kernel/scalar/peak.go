package scalar

// Peak takes blocks turns of eight chains of a product and a sum.
func Peak(blocks int) {
	var a [8]float32
	for range blocks {
		for i := range a {
			a[i] = float32(a[i]*0.5) + 1
		}
	}
	if a[0] < 0 {
		panic("scalar: a sum of positive numbers is negative")
	}
}
