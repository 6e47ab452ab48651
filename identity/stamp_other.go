//go:build !linux && (unix || windows)

package identity

import (
	"context"
	"fmt"
)

// Bearers: nothing that is inherited for good can be read here.
func (l *local) Bearers(context.Context, uint64) (Bearers, error) {
	return Bearers{}, fmt.Errorf("look for stamps: %w", ErrUnsupported)
}
