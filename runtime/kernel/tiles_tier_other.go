//go:build !amd64

package kernel

var tiers = []tier{portable}

func transposeBlocks(elem int, dst *byte, dstRow int, src *byte, srcRow, blocks int) {
	panic("the portable tier transposes an element at a time")
}

func prefetchRows(x *byte, stride, rows int) { panic("the portable tier has no tiles") }
