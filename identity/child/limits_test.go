package child

import (
	"maps"
	"slices"
	"testing"
)

func TestBeyond(t *testing.T) {
	own := Limits{"umask": "0022", "nofile": "4096:4096", "core": "0:unlimited"} // as Go shows it: raised
	for name, c := range map[string]struct {
		want, rest Limits
		nofile     uint64
	}{
		"nothing was recorded":             {nil, nil, 0},
		"the same":                         {Limits{"umask": "0022", "core": "0:unlimited"}, nil, 0},
		"Go raises open files":             {Limits{"nofile": "1024:4096"}, nil, 1024},
		"as many as ours":                  {Limits{"nofile": "4096:4096"}, nil, 4096},
		"too few for us, even for a while": {Limits{"nofile": "64:4096"}, Limits{"nofile": "64:4096"}, 0},
		"another hard limit":               {Limits{"nofile": "512:512"}, Limits{"nofile": "512:512"}, 0},
		"umask":                            {Limits{"umask": "0027", "nofile": "1024:4096"}, Limits{"umask": "0027"}, 1024},
		"core":                             {Limits{"core": "unlimited:unlimited"}, Limits{"core": "unlimited:unlimited"}, 0},
		"one that this system lacks":       {Limits{"threads": "1:1"}, nil, 0},
		"nonsense":                         {Limits{"nofile": "many"}, Limits{"nofile": "many"}, 0},
	} {
		rest, nofile := c.want.Beyond(own)
		if !maps.Equal(rest, c.rest) || nofile != c.nofile {
			t.Errorf("%s: %v and %d files", name, rest, nofile)
		}
	}
}

func TestLimitsOnACommandLine(t *testing.T) {
	l := Limits{"umask": "0027", "nofile": "512:unlimited", "core": "0:0"}
	got := l.Through("hob", "/bin/x", []string{"x", "a b"})
	if want := []string{"hob", "with", "core=0:0,nofile=512:unlimited,umask=0027", "/bin/x", "x", "a b"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if back := limitsOf(got[2]); !maps.Equal(back, l) {
		t.Errorf("%v", back)
	}
}

func TestBounds(t *testing.T) {
	for text, want := range map[string][2]uint64{
		"1:2": {1, 2}, "0:unlimited": {0, infinity}, "unlimited:unlimited": {infinity, infinity}, "99999999999999999:3": {99999999999999999, 3},
	} {
		if soft, hard, err := bounds(text); err != nil || soft != want[0] || hard != want[1] {
			t.Errorf("%s: %d, %d, %v", text, soft, hard, err)
		}
	}
	for _, text := range []string{"", "1", "a:b", "-1:2", "1:"} {
		if _, _, err := bounds(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// Where the hard limit may not be raised as much is had as there is.
func TestSettle(t *testing.T) {
	for in, want := range map[[3]uint64][2]uint64{{5, 10, 20}: {5, 10}, {5, 30, 20}: {5, 20}, {25, 30, 20}: {20, 20}} {
		if soft, hard := settle(in[0], in[1], in[2]); soft != want[0] || hard != want[1] {
			t.Errorf("%v: %d, %d", in, soft, hard)
		}
	}
}
