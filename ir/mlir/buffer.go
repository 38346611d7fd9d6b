package mlir

import "unsafe"

// A buffer is text that is being written.
type buffer struct{ text []byte }

func (b *buffer) WriteString(s string) (int, error) {
	b.text = append(b.text, s...)
	return len(s), nil
}

func (b *buffer) WriteByte(c byte) error {
	b.text = append(b.text, c)
	return nil
}

func (b *buffer) Write(data []byte) (int, error) {
	b.text = append(b.text, data...)
	return len(data), nil
}

// Len is the number of bytes so far.
func (b *buffer) Len() int { return len(b.text) }

// String is the text. Nothing is written after it.
func (b *buffer) String() string { return unsafe.String(unsafe.SliceData(b.text), len(b.text)) }

// expect makes room for a list of n items, the first i of which are the text from an
// offset on, if the others are as long and half of that again would be missing: a large
// text then grows a few times and not by a quarter again and again.
func (b *buffer) expect(from, i, n int) {
	most := len(b.text) + (len(b.text)-from)/i*(n-i)
	if most += most / 16; most > cap(b.text)+cap(b.text)/2 {
		text := make([]byte, len(b.text), most)
		copy(text, b.text)
		b.text = text
	}
}
