//go:build !linux

package kernel

func useHugePages(Mem) {}
