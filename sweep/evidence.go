package sweep

// Grade of a piece of evidence, 'A' (best) to 'E' (could not read).
type Grade byte

// Grade of the evidence. What this hob has no name for is grade E.
func (e Evidence) Grade() Grade {
	switch e {
	case Captured:
		return 'A'
	case Adopted, Cgroup:
		return 'B'
	case Child, Session, Taken:
		return 'C'
	case Marker, Command, Port, GPU, Stamp:
		return 'D'
	}
	return 'E'
}

// Permits reports whether the evidence permits a signal to a process that
// verifies as owned. One piece of grade A to C does. Grades D and E never add
// up: a copied environment on a reused port is still a stranger.
//
// [Session] is written down only with a living, captured anchor; a session
// number alone is named in a look-alike's Why and is nobody's evidence.
func Permits(evidence []Evidence) bool {
	for _, e := range evidence {
		if e.Grade() <= 'C' {
			return true
		}
	}
	return false
}
