//go:build !linux

package child

// Patiently calls f: how late a timer may be is not inherited here.
func Patiently(f func()) { f() }
