package sweep

// branch is a member's place in the drawn tree.
type branch struct {
	index  int
	depth  int
	branch string // what stands before it on its line
	below  string // what stands before a line of its own below it
}

// forest orders members as trees: children below their parents, in the order in
// which they were captured. A member whose parent is not one is a root.
func forest(members []ReportMember) []branch {
	kids, roots := map[int][]int{}, []int{}
	for i := range members {
		if p := parentOf(members, i); p >= 0 {
			kids[p] = append(kids[p], i)
		} else {
			roots = append(roots, i)
		}
	}
	var out []branch
	var draw func(i, depth int, lead string, last bool)
	draw = func(i, depth int, lead string, last bool) {
		b := branch{index: i, depth: depth, branch: lead, below: lead}
		next := lead
		if depth > 0 {
			b.branch += pick(last, "└─ ", "├─ ")
			next += pick(last, "   ", "│  ")
			b.below = next
		}
		b.below += pick(len(kids[i]) > 0, "│  ", "   ")
		out = append(out, b)
		for k, kid := range kids[i] {
			draw(kid, depth+1, next, k == len(kids[i])-1)
		}
	}
	for _, i := range roots {
		draw(i, 0, "", true)
	}
	return out
}

// parentOf is the index of a member's parent: the nearest one before it with
// that pid, since numbers are used again and parents are captured first.
func parentOf(members []ReportMember, i int) int {
	for p := i - 1; p >= 0; p-- {
		if members[p].PID == members[i].Parent && members[p].PID != members[i].PID {
			return p
		}
	}
	return -1
}

func pick(cond bool, yes, no string) string {
	if cond {
		return yes
	}
	return no
}
