package pilot

import (
	"os"
	"runtime"
	"unsafe"
)

// retitle makes this process look like title, in the way of setproctitle, which
// vLLM and SGLang use: it overwrites the memory in which the kernel keeps the
// command line, and with wipeEnv that of the environment behind it, which
// /proc/PID/environ shows. What Go has copied from there stays usable, strings
// of os.Args do not. Linux only; elsewhere it does nothing.
func retitle(title string, wipeEnv bool) {
	if runtime.GOOS != "linux" {
		return
	}
	memory := argMemory()
	if wipeEnv {
		env, _ := os.ReadFile("/proc/self/environ") // unreadable: nothing of it is wiped
		memory = unsafe.Slice(unsafe.SliceData(memory), len(memory)+len(env))
	}
	clear(memory)
	copy(memory[:max(0, len(memory)-1)], title)
	_ = os.WriteFile("/proc/self/comm", []byte(title), 0) // the kernel cuts it to 15 bytes
}

// argMemory is where the kernel keeps our command line. Go's os.Args points
// into it (runtime.goargs); only what is one piece, as execve leaves it, counts.
func argMemory() []byte {
	start := unsafe.StringData(os.Args[0])
	size := uintptr(len(os.Args[0]) + 1)
	for _, arg := range os.Args[1:] {
		if uintptr(unsafe.Pointer(unsafe.StringData(arg))) != uintptr(unsafe.Pointer(start))+size {
			break
		}
		size += uintptr(len(arg) + 1)
	}
	return unsafe.Slice(start, size)
}
