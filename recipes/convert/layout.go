package convert

import (
	"errors"
	"slices"
	"strconv"
)

// tmux does not remember by which name a window was laid out; it writes the cells
// down: "CHECKSUM,WxH,X,Y" and then a pane's number, or {…} for cells side by
// side, or […] for cells one above the other (tmux(1), layout-custom.c). So an
// arrangement is compared with what each of the named ones makes.

// named are the arrangements that tmux has names for.
var named = []string{"even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled"}

// cell is a pane or a group of cells.
type cell struct {
	w, h  int
	split byte // '{' side by side, '[' one above the other, 0 a pane
	cells []cell
}

// splitOf is the named layout that a text is, or is most like; exact is false
// where sizes or cells differ from what that name makes. "" is no layout at all.
func splitOf(text string) (name string, exact bool) {
	if slices.Contains(named, text) {
		return text, true
	}
	switch text { // newer tmux
	case "main-horizontal-mirrored":
		return "main-horizontal", false
	case "main-vertical-mirrored":
		return "main-vertical", false
	}
	root, err := parseLayout(text)
	if err != nil {
		return "", false
	}
	return root.name()
}

var errLayout = errors.New("not a layout of tmux")

// maxCells bounds what is read of a stranger's text.
const maxCells = 1000

func parseLayout(text string) (cell, error) {
	if len(text) < 5 || text[4] != ',' {
		return cell{}, errLayout
	}
	p := layoutParser{text: text[5:]}
	root, err := p.cell(0)
	if err != nil || p.text != "" {
		return cell{}, errLayout
	}
	return root, nil
}

type layoutParser struct {
	text string
	seen int
}

func (p *layoutParser) cell(depth int) (c cell, err error) {
	if p.seen++; p.seen > maxCells || depth > 64 {
		return c, errLayout
	}
	if c.w, err = p.number('x'); err != nil {
		return c, err
	}
	if c.h, err = p.number(','); err != nil {
		return c, err
	}
	if _, err = p.number(','); err != nil {
		return c, err
	}
	if _, err = p.digits(); err != nil {
		return c, err
	}
	switch {
	case p.eat(','):
		_, err = p.digits()
		return c, err
	case p.eat('{'):
		c.split = '{'
	case p.eat('['):
		c.split = '['
	default:
		return c, nil // older ones write no number
	}
	for {
		one, err := p.cell(depth + 1)
		if err != nil {
			return c, err
		}
		c.cells = append(c.cells, one)
		if !p.eat(',') {
			break
		}
	}
	if !p.eat(map[byte]byte{'{': '}', '[': ']'}[c.split]) {
		return c, errLayout
	}
	return c, nil
}

func (p *layoutParser) eat(c byte) bool {
	if p.text == "" || p.text[0] != c {
		return false
	}
	p.text = p.text[1:]
	return true
}

func (p *layoutParser) number(end byte) (int, error) {
	n, err := p.digits()
	if err == nil && !p.eat(end) {
		err = errLayout
	}
	return n, err
}

func (p *layoutParser) digits() (int, error) {
	i := 0
	for i < len(p.text) && p.text[i] >= '0' && p.text[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(p.text[:i])
	p.text = p.text[i:]
	if err != nil {
		return 0, errLayout
	}
	return n, nil
}

// name is the named layout of a window.
func (c cell) name() (string, bool) {
	switch {
	case c.split == 0:
		return "tiled", true // one pane has every layout
	case flat(c.cells):
		return c.row()
	case len(c.cells) == 2 && c.cells[0].split == 0 && flat(c.cells[1].cells):
		if c.split == '{' {
			return "main-vertical", even(heights(c.cells[1].cells))
		}
		return "main-horizontal", even(widths(c.cells[1].cells))
	case c.split == '[':
		return "tiled", c.tiles()
	}
	return "tiled", false
}

// row is a window whose panes stand in one row or column. With two panes a main
// layout looks the same as an even one, but for the sizes.
func (c cell) row() (string, bool) {
	names := map[byte][2]string{'{': {"even-horizontal", "main-vertical"}, '[': {"even-vertical", "main-horizontal"}}[c.split]
	sizes := widths(c.cells)
	if c.split == '[' {
		sizes = heights(c.cells)
	}
	if !even(sizes) && len(c.cells) == 2 {
		return names[1], true
	}
	return names[0], even(sizes)
}

// tiles reports whether the rows are as tiled makes them: as many in each, but
// for the last.
func (c cell) tiles() bool {
	columns := max(1, len(c.cells[0].cells))
	for i, row := range c.cells {
		last := i == len(c.cells)-1
		if row.split == '[' || row.split == '{' && !flat(row.cells) || max(1, len(row.cells)) > columns || !last && max(1, len(row.cells)) != columns {
			return false
		}
		if !even(widths(row.cells)) {
			return false
		}
	}
	return even(heights(c.cells))
}

func flat(cells []cell) bool {
	return len(cells) > 0 && !slices.ContainsFunc(cells, func(c cell) bool { return c.split != 0 })
}

func widths(cells []cell) []int {
	var all []int
	for _, c := range cells {
		all = append(all, c.w)
	}
	return all
}

func heights(cells []cell) []int {
	var all []int
	for _, c := range cells {
		all = append(all, c.h)
	}
	return all
}

// even reports whether sizes are as equal as whole cells allow: tmux gives what
// is left over to the last, up to one less than there are panes.
func even(sizes []int) bool {
	return len(sizes) < 2 || slices.Max(sizes)-slices.Min(sizes) <= len(sizes)
}
