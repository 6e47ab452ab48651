package sweep

import (
	"context"
	"fmt"

	"hob/identity"
)

// Adopt captures trees that a person has asked for by the pane they run in: a
// server that was started by hand. roots are its processes below first, which is
// the first process of that pane, or first itself. Each must still hang below
// first, by a chain of parents that are pinned one by one. That a person has named
// the pane is the evidence for the roots (taken, as of a look-alike that was named
// by its id); what is below them is captured from there like any other tree.
// Nothing is signalled.
func Adopt(ctx context.Context, h identity.Host, t Target, first identity.Ref, roots []identity.Ref) (Capture, error) {
	tr := newTree(h, t, Capture{}, StepAll)
	defer tr.close()
	for _, ref := range roots {
		if err := tr.adopt(ref, first); err != nil {
			return Capture{}, err
		}
	}
	for range captureRounds {
		tr.look(ctx, nil)
		if !tr.moved || ctx.Err() != nil {
			break
		}
	}
	for _, ref := range roots {
		if n := tr.find(ref); n == nil || !n.living() {
			return Capture{}, fmt.Errorf("process %d: %w", ref.PID, identity.ErrGone)
		}
	}
	if err := tr.blindness(); err != nil {
		tr.say(err.Error())
	}
	tr.prune()
	return tr.capture(phaseRolling), ctx.Err()
}

// adopt makes a member of one root.
func (tr *tree) adopt(ref, first identity.Ref) error {
	pin, f := tr.h.Verify(ref)
	if pin == nil {
		return fmt.Errorf("process %d: %w", ref.PID, f.Err())
	}
	row, err := pin.Read(identity.WantArgs)
	if err == nil {
		err = tr.climb(pin, row, first)
	}
	if err != nil {
		_ = pin.Close()
		return err
	}
	n := tr.take(pin, row, nil, []Evidence{Taken})
	n.Parent, n.SID, n.PGID = row.PPID, row.SID, row.PGID // the command was known by its Ref alone
	if sp := tr.spareOf(n); sp.why != "" {
		return fmt.Errorf("%w: process %d is left alone whoever asks: %s", ErrRefused, ref.PID, sp.why)
	}
	return nil
}

// climb follows the parents of a pinned process up to first. Each parent is
// pinned, the child's parent is read again under the child's pin, and then the
// parent must be alive: so neither number was another process's in between. What
// is below a boundary is somebody's own work.
func (tr *tree) climb(child identity.Handle, row identity.Process, first identity.Ref) error {
	pid, at := row.PID, row
	for range maxClimb {
		if b := boundaryOf(at); b != "" {
			return fmt.Errorf("%w: process %d is, or is below, a %s (process %d)", ErrRefused, pid, b, at.PID)
		}
		if sameProcess(child.Ref(), first) {
			return nil
		}
		parent, up, err := tr.parentOf(child, at.PPID)
		if err != nil {
			return fmt.Errorf("process %d is not proven to be below the pane's process %d: %w", pid, first.PID, err)
		}
		defer parent.Close()
		child, at = parent, up
	}
	return fmt.Errorf("%w: process %d is not below the pane's process %d", ErrRefused, pid, first.PID)
}

// maxClimb bounds a chain of parents: a table that lies must not hold us.
const maxClimb = 1000

func (tr *tree) parentOf(child identity.Handle, ppid int) (identity.Handle, identity.Process, error) {
	if ppid <= 1 {
		return nil, identity.Process{}, fmt.Errorf("%w: process %d has no parent left", ErrRefused, child.Ref().PID)
	}
	parent, up, err := tr.pinLiving(ppid)
	if err != nil {
		return nil, up, err
	}
	again, err := child.Read(0)
	if err == nil && (again.PPID != ppid || parent.Verify().Verdict != identity.Owned) {
		err = fmt.Errorf("%w: process %d has changed its parent", ErrRefused, child.Ref().PID)
	}
	if err != nil {
		_ = parent.Close()
		return nil, up, err
	}
	return parent, up, nil
}

// Boundary says whether a process is a tmux server or a hob's keeper, "" for
// neither: what runs there is somebody's own work.
func Boundary(p identity.Process) string { return boundaryOf(p) }
