package identity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"hob/identity"
)

// A process is recorded, the record is stored, and much later (perhaps by
// another program, after a reboot, or when the number is somebody else's) it is
// verified before anything is signalled.
func Example() {
	host, err := identity.Local()
	if err != nil {
		fmt.Println(err)
		return
	}
	server := exec.Command("sleep", "600")
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Wait() }()

	// Record: pin whatever has the number, and take down what identifies it.
	h, err := host.Open(server.Process.Pid)
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := json.Marshal(h.Ref()) // store
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = h.Close()

	// Verify: the handle exists exactly when the verdict is Owned.
	h, found := host.Verify(identity.ParseRef(file))
	fmt.Println("now:", found.Verdict)
	if h == nil {
		return
	}
	defer h.Close()

	// Signal through the pin, and wait for the end.
	if err := h.Signal(syscall.SIGTERM); err != nil {
		fmt.Println(err)
		return
	}
	if err := host.Wait(context.Background(), []identity.Handle{h}, time.Now().Add(time.Minute)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("then:", h.Verify().Verdict)

	// A record from a file that hob did not write proves nothing.
	_, found = host.Verify(identity.ParseRef([]byte(`{"pid": -1}`)))
	fmt.Println("a hostile record:", found.Verdict)
	// Output:
	// now: owned
	// then: gone
	// a hostile record: unverifiable
}

// Only Gone says that a process has ended. ErrUnverifiable is not "nothing there".
func ExampleFinding_Err() {
	host, err := identity.Local()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, found := host.Verify(identity.Ref{PID: 1 << 30})
	fmt.Println(found.Verdict, "-", found.Reason)
	// Output:
	// unverifiable - pid 1073741824 is larger than any pid
}
