package tasks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"hob/identity/cgrouptest"
	"hob/identity/child"
)

// roles are what the test binary can be run as instead of the tests, so that
// tests have real processes without a second program. The arguments of the
// process are the role's.
var roles = map[string]func(args []string) int{}

// roleEnv selects the role.
const roleEnv = "HOB_TEST_ROLE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == child.WithVerb { // as hob is, by a keeper
		os.Exit(child.With(os.Args[2:]))
	}
	if role := os.Getenv(roleEnv); role != "" {
		os.Unsetenv(roleEnv)
		f := roles[role]
		if f == nil {
			fmt.Fprintln(os.Stderr, "no such role:", role)
			os.Exit(99)
		}
		os.Exit(f(os.Args[1:]))
	}
	os.Exit(cgrouptest.Run(m))
}

// WriteKeeper writes keeper.json, as a keeper does that tests only speak of.
func (t *TaskDir) WriteKeeper(v Keeper) error { return t.writeKeeper(v, durable) }

// patience is how long a test waits for a condition. It is generous: what is
// awaited takes milliseconds.
const patience = 30 * time.Second
