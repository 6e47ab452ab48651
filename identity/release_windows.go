package identity

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// KernelRelease is the release of the running kernel.
func KernelRelease() (string, error) {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber), nil
}
