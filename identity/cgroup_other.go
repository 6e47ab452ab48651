//go:build (unix && !linux) || windows

package identity

// Cgroups are Linux's alone.
func (l *local) Cgroups() Cgroups { return noCgroups{} }
