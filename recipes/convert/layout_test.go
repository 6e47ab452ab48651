package convert

import (
	"slices"
	"testing"
)

// What tmux 3.3a makes of each named layout, in a window of 200x50. With few panes
// several names make the same.
func TestSplitOfTmuxsOwn(t *testing.T) {
	for text, names := range map[string][]string{
		"be53,200x50,0,0[200x24,0,0,0,200x25,0,25,1]":                                                                                                 {"even-vertical", "tiled", "main-horizontal"},
		"1af1,200x50,0,0{99x50,0,0,0,100x50,100,0,1}":                                                                                                 {"even-horizontal"},
		"10e6,200x50,0,0{80x50,0,0,0,119x50,81,0,1}":                                                                                                  {"main-vertical"},
		"4efd,200x50,0,0[200x24,0,0{99x24,0,0,0,100x24,100,0,1},200x25,0,25,2]":                                                                       {"tiled"},
		"67f8,200x50,0,0{66x50,0,0,0,66x50,67,0,1,66x50,134,0,2}":                                                                                     {"even-horizontal"},
		"8a29,200x50,0,0[200x16,0,0,0,200x16,0,17,1,200x16,0,34,2]":                                                                                   {"even-vertical"},
		"c9aa,200x50,0,0[200x24,0,0,0,200x25,0,25{99x25,0,25,1,100x25,100,25,2}]":                                                                     {"main-horizontal"},
		"5b8a,200x50,0,0{80x50,0,0,0,119x50,81,0[119x24,81,0,1,119x25,81,25,2]}":                                                                      {"main-vertical"},
		"543c,200x50,0,0[200x24,0,0{99x24,0,0,0,100x24,100,0,1},200x25,0,25{99x25,0,25,2,100x25,100,25,3}]":                                           {"tiled"},
		"6173,200x50,0,0[200x11,0,0,0,200x11,0,12,1,200x11,0,24,2,200x14,0,36,3]":                                                                     {"even-vertical"},
		"31dc,200x50,0,0[200x16,0,0{99x16,0,0,0,100x16,100,0,1},200x16,0,17{99x16,0,17,2,100x16,100,17,3},200x16,0,34,4]":                             {"tiled"},
		"099e,200x50,0,0{80x50,0,0,0,119x50,81,0[119x11,81,0,1,119x11,81,12,2,119x11,81,24,3,119x14,81,36,4]}":                                        {"main-vertical"},
		"da93,200x50,0,0{32x50,0,0,0,32x50,33,0,1,32x50,66,0,2,32x50,99,0,3,32x50,132,0,4,35x50,165,0,5}":                                             {"even-horizontal"},
		"726b,200x50,0,0[200x16,0,0{99x16,0,0,0,100x16,100,0,1},200x16,0,17{99x16,0,17,2,100x16,100,17,3},200x16,0,34{99x16,0,34,4,100x16,100,34,5}]": {"tiled"},
		"ca7b,200x50,0,0[200x24,0,0,0,200x25,0,25{39x25,0,25,1,39x25,40,25,2,39x25,80,25,3,39x25,120,25,4,40x25,160,25,5}]":                           {"main-horizontal"},
	} {
		if name, exact := splitOf(text); !exact || !slices.Contains(names, name) {
			t.Errorf("%s is %q, exactly: %t; want %v", text, name, exact, names)
		}
	}
}

func TestSplitOf(t *testing.T) {
	for _, c := range []struct {
		text, name string
		exact      bool
	}{
		{"main-vertical", "main-vertical", true},
		{"", "", false},
		{"nonsense", "", false},
		{"b25f,80x24,0,0,3", "tiled", true},
		{"b25f,80x24,0,0{40x24,0,0,1,39x24,41,0,2}", "even-horizontal", true},
		{"b25f,80x24,0,0{60x24,0,0,1,19x24,61,0,2}", "main-vertical", true},
		{"b25f,80x24,0,0[80x12,0,0,1,80x11,0,13,2]", "even-vertical", true},
		{"b25f,80x24,0,0[80x20,0,0,1,80x3,0,21,2]", "main-horizontal", true},
		{"b25f,80x24,0,0{10x24,0,0,1,40x24,11,0,2,28x24,52,0,3}", "even-horizontal", false},
		{"b25f,200x50,0,0{100x50,0,0,0,99x50,101,0[99x25,101,0,1,99x24,101,26,2]}", "main-vertical", true},
		{"b25f,200x50,0,0{100x50,0,0,0,99x50,101,0[99x5,101,0,1,99x44,101,6,2]}", "main-vertical", false},
		{"b25f,200x50,0,0[200x24,0,0,0,200x25,0,25{100x25,0,25,1,99x25,101,25,2}]", "main-horizontal", true},
		{"b25f,200x50,0,0[200x25,0,0{100x25,0,0,0,99x25,101,0,1},200x24,0,26{100x24,0,26,2,99x24,101,26,3}]", "tiled", true},
		{"b25f,200x50,0,0[200x25,0,0{100x25,0,0,0,99x25,101,0,1},200x24,0,26,2]", "tiled", true},
		{"b25f,200x50,0,0{100x50,0,0[100x25,0,0,0,100x24,0,26,1],99x50,101,0[99x25,101,0,2,99x24,101,26,3]}", "tiled", false},
		{"b25f,200x50,0,0{100x50,0,0,0", "", false},
		{"b25f,200x50,0,0{}", "", false},
		{"b25f,200x50,0,0{100x50,0,0,0]", "", false},
	} {
		if name, exact := splitOf(c.text); name != c.name || exact != c.exact {
			t.Errorf("%s is %q, exactly: %t; want %q, %t", c.text, name, exact, c.name, c.exact)
		}
	}
}
