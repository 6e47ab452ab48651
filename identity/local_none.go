//go:build !unix && !windows

package identity

import (
	"fmt"
	"runtime"
)

// Local errors: hob does not know this system.
func Local() (Host, error) {
	return nil, fmt.Errorf("look at the processes of %s: %w", runtime.GOOS, ErrUnsupported)
}
