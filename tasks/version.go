//go:build !hobnext && !hobnextkeeper

package tasks

// What hob's own writes and reads are at. An upgraded hob meets keepers and records
// of the one before, and perhaps the other way round; a test builds both.
const (
	// Schema is the version of every record that this hob writes. It is raised when
	// a reader that knows the one before would take a record for something else; a
	// new field alone does not. An older record is read; a newer one is refused and
	// left untouched.
	Schema = 1

	// KeeperProtocol is the version of what passes between a keeper and others:
	// which signals and files it follows, and who writes which record when. It is in
	// keeper.json. A keeper of an older one is stopped as any other; a living keeper
	// of a newer one is left to the hob that knows it.
	KeeperProtocol = 1
)
