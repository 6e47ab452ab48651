package tmux

import "context"

// Look is what a person sees of a pane beside what runs in it.
type Look struct {
	Title string // "" leaves it
	Focus bool   // it has its window's cursor
	Front bool   // its window is the one that the session shows
}

// Dress gives a pane its look. In a window of several panes each shows its title
// above it; a program may give its pane another title, so the name that hob gave
// is kept in an option of the pane's own.
func (s *Server) Dress(ctx context.Context, pane Pane, look Look) error {
	if err := checkID("pane", paneID, pane.ID); err != nil {
		return err
	}
	if err := checkID("window", windowID, pane.Window); err != nil {
		return err
	}
	args, err := look.commands(pane)
	if err != nil || len(args) == 0 {
		return err
	}
	_, err = s.run(ctx, "/", args...)
	return err
}

// border is what stands above a pane: hob's name for it, else its own title.
const border = " #{?@hob,#{@hob},#{pane_title}}#{?pane_dead, (ended),} "

func (l Look) commands(pane Pane) ([]string, error) {
	var args []string
	add := func(command ...string) {
		if len(args) > 0 {
			args = append(args, ";")
		}
		args = append(args, command...)
	}
	if l.Title != "" {
		if err := checkWindowName(l.Title); err != nil { // it is expanded like one
			return nil, err
		}
		add("select-pane", "-t", pane.ID, "-T", literal(l.Title))
		add("set-option", "-pq", "-t", pane.ID, "@hob", literal(l.Title))
		add("set-option", "-wq", "-t", pane.Window, "pane-border-format", border)
		add("set-option", "-wq", "-t", pane.Window, "pane-border-status", "top")
	}
	if l.Focus {
		add("select-pane", "-t", pane.ID)
	}
	if l.Front {
		add("select-window", "-t", pane.Window)
	}
	return args, nil
}
