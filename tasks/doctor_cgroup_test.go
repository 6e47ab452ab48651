package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"hob/identity"
)

func TestJudgeCgroup(t *testing.T) {
	for _, c := range []struct {
		err   error
		grade string
		tip   bool
	}{
		{nil, Good, false},
		{fmt.Errorf("make cgroup: %w", fs.ErrPermission), Warning, true},
		{fmt.Errorf("place: %w", identity.ErrUnsupported), Warning, false},
		{errors.New("input/output error"), Unknown, false},
	} {
		if got := judgeCgroup(c.err); got.Grade != c.grade || (got.Tip != "") != c.tip || got.Text == "" {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
