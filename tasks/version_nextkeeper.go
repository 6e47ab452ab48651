//go:build hobnextkeeper && !hobnext

package tasks

// A hob of which only the keeper is newer.
const (
	Schema         = 1
	KeeperProtocol = 2
)
