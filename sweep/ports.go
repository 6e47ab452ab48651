package sweep

import (
	"context"
	"fmt"
	"slices"

	"hob/identity"
)

// ports looks at the task's ports and says who holds them: as states for the
// report, and as the ports of each holder for the look-alikes.
func (s *stopper) ports(ctx context.Context) ([]PortState, map[int][]int) {
	held := map[int][]int{}
	out := make([]PortState, 0, len(s.tr.t.Ports))
	if len(s.tr.t.Ports) == 0 {
		return out, held
	}
	sockets, err := s.tr.h.Sockets(ctx, 0)
	for _, port := range s.tr.t.Ports {
		if err != nil {
			out = append(out, PortState{Port: port, State: "unknown", Note: "the sockets could not be listed: " + err.Error()})
			continue
		}
		pids, note := s.holders(ctx, listeners(sockets, port))
		for _, pid := range pids {
			held[pid] = append(held[pid], port)
		}
		out = append(out, portState(port, pids, note, len(listeners(sockets, port)) > 0))
	}
	return out, held
}

func listeners(sockets []identity.Socket, port int) []identity.Socket {
	var out []identity.Socket
	for _, s := range sockets {
		if s.Listen && int(s.Local.Port()) == port {
			out = append(out, s)
		}
	}
	return out
}

// holders finds the processes that have the listening sockets open.
func (s *stopper) holders(ctx context.Context, listening []identity.Socket) (pids []int, note string) {
	var inodes []uint64
	for _, l := range listening {
		if l.PID != 0 {
			pids = append(pids, l.PID)
		} else if l.Inode != 0 {
			inodes = append(inodes, l.Inode)
		}
	}
	if len(inodes) > 0 {
		h, err := s.tr.h.Holders(ctx, inodes, nil)
		if err != nil {
			note = "the holder could not be looked for: " + err.Error()
		} else if len(h.Unreadable) > 0 {
			note = "the open files of " + count(len(h.Unreadable)) + " could not be read"
		}
		for _, p := range h.ByInode {
			pids = append(pids, p...)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), note
}

// portState is what the report says of a port.
func portState(port int, pids []int, note string, listening bool) PortState {
	st := PortState{Port: port, State: "free"}
	if !listening {
		return st
	}
	st.State = "held"
	switch {
	case len(pids) > 0:
		st.PID = &pids[0]
		if len(pids) > 1 {
			st.Note = fmt.Sprintf("also held by %v", pids[1:])
		}
	case note != "":
		st.Note = note
	default:
		st.Note = "no process shows the listening socket"
	}
	return st
}
