package gpu

import (
	"context"
	"fmt"
	"strings"
)

// Driver is NVIDIA's driver, as nvidia-smi names it; "" is what it does not say.
type Driver struct {
	Version string
	CUDA    string // the newest CUDA that it runs
}

// DriverOf asks nvidia-smi of this host for the driver. The error is ErrNoSMI where
// there is none; a driver that was updated under a running kernel is an error too.
func DriverOf(ctx context.Context) (Driver, error) { return Reader{}.Driver(ctx) }

// Driver asks for the driver.
func (r Reader) Driver(ctx context.Context) (Driver, error) {
	smi, err := r.smi()
	if err != nil {
		return Driver{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.wait())
	defer cancel()
	run := r.Run
	if run == nil {
		run = execute
	}
	out, err := run(ctx, []string{smi}) // no query has the CUDA version
	if ctx.Err() != nil {
		return Driver{}, fmt.Errorf("nvidia-smi: no answer: %w", ctx.Err())
	}
	if err != nil {
		return Driver{}, fmt.Errorf("nvidia-smi: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return parseDriver(string(out)), nil
}

// parseDriver reads the head of nvidia-smi's table: "… Driver Version: 535.104.05
// CUDA Version: 12.2 …".
func parseDriver(text string) Driver {
	return Driver{Version: behind(text, "Driver Version:"), CUDA: behind(text, "CUDA Version:")}
}

// behind is the version that stands behind a label; "" where none does ("N/A", "ERR!").
func behind(text, label string) string {
	_, rest, _ := strings.Cut(text, label)
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	word = strings.TrimSpace(word)
	if word == "" || word[0] < '0' || word[0] > '9' {
		return ""
	}
	return word
}
