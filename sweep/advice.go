package sweep

import (
	"fmt"
	"strings"
)

// Advice says what remains after a stop and what a person can do about it, a
// sentence each. It is empty when nothing remains, and of a dry run has only what
// the stop would not change.
func (r Report) Advice() []string {
	var out []string
	name := r.Run + "/" + r.Task
	for _, m := range r.Members {
		if text := adviceFor(m, name); text != "" && !r.DryRun {
			out = append(out, text)
		}
	}
	for _, p := range r.Ports {
		if p.State == "held" && p.PID != nil && p.Note != ownPort && !r.hasMember(*p.PID) {
			out = append(out, fmt.Sprintf("port %d is held by %d, which hob cannot prove to be of %s", p.Port, *p.PID, name))
		}
	}
	if r.Verdict == Unverified && len(out) == 0 && !r.DryRun {
		out = append(out, fmt.Sprintf("not everything could be looked at (see the notes); `hob sweep %s` looks again", name))
	}
	return out
}

func adviceFor(m ReportMember, name string) string {
	switch {
	case m.Fate == Spared:
		return fmt.Sprintf("%d was left alone on purpose (%s)", m.PID, strings.TrimPrefix(m.Note, leftAlone))
	case m.Fate == Unverifiable:
		return fmt.Sprintf("%d could not be verified, so it was not signalled; `hob sweep %s` looks again", m.PID, name)
	case m.Fate != Survived:
		return ""
	case strings.Contains(m.Note, leftAlone):
		return fmt.Sprintf("%d lives and was left alone (%s): end it yourself if it is not needed", m.PID, strings.TrimPrefix(m.Note, leftAlone))
	case strings.Contains(m.Note, "refused"):
		return fmt.Sprintf("%d lives, and hob may not signal it: `sudo hob sweep %s`", m.PID, name)
	case strings.Contains(m.Note, "stuck:"):
		return fmt.Sprintf("%d cannot be killed while the kernel holds it; `hob sweep %s` tries again", m.PID, name)
	}
	return fmt.Sprintf("%d lives; `hob sweep %s` tries again", m.PID, name)
}

func (r Report) hasMember(pid int) bool {
	for _, m := range r.Members {
		if m.PID == pid && !ended(m.Fate) {
			return true
		}
	}
	return false
}
