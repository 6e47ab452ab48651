//go:build hobnext

package tasks

// The next hob, for the test that has both at work on one state folder.
const (
	Schema         = 2
	KeeperProtocol = 2
)
