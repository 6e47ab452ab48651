package gpu

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// smiDeadline bounds nvidia-smi: it hangs when the driver does.
const smiDeadline = 3 * time.Second

// NVIDIA asks nvidia-smi for every process that holds GPU memory. It errors with
// ErrNoSMI when there is none.
func (r Reader) NVIDIA(ctx context.Context) ([]Use, error) {
	smi, err := r.smi()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.wait())
	defer cancel()
	apps, err := r.ask(ctx, smi, "--query-compute-apps=pid,gpu_uuid,used_memory")
	if err != nil {
		return nil, err
	}
	uses, err := parseApps(apps)
	if err != nil || len(uses) == 0 {
		return uses, err
	}
	// The numbers are for people. Without them the uuids serve.
	if cards, err := r.ask(ctx, smi, "--query-gpu=index,uuid"); err == nil {
		number(uses, cards)
	}
	return uses, nil
}

// smi is the path of nvidia-smi.
func (r Reader) smi() (string, error) {
	if r.SMI != "" {
		return r.SMI, nil
	}
	return exec.LookPath("nvidia-smi")
}

func (r Reader) wait() time.Duration {
	if r.Wait > 0 {
		return r.Wait
	}
	return smiDeadline
}

func (r Reader) ask(ctx context.Context, smi, query string) ([]byte, error) {
	run := r.Run
	if run == nil {
		run = execute
	}
	out, err := run(ctx, []string{smi, query, "--format=csv,noheader,nounits"})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("nvidia-smi %s: no answer: %w", query, ctx.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi %s: %w: %s", query, err, strings.TrimSpace(string(out)))
	}
	return out, nil
}

// execute runs a program; what it wrote to its standard error is told when it fails.
func execute(ctx context.Context, argv []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second // a grandchild may hold its output open
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		out = append(stderr.Bytes(), out...)
	}
	return out, err
}

// parseApps reads "pid, uuid, MiB" lines. The driver may not say how much
// ("[N/A]", as in WSL2 and with MIG): then Bytes is null.
func parseApps(text []byte) ([]Use, error) {
	rows, err := rowsOf(text)
	if err != nil {
		return nil, err
	}
	var uses []Use
	for _, row := range rows {
		if len(row) != 3 {
			return nil, fmt.Errorf("nvidia-smi gave %q, not pid, uuid and memory", strings.Join(row, ", "))
		}
		pid, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi gave %q for a pid", row[0])
		}
		use := Use{PID: pid, GPU: row[1]}
		use.Bytes = mib(row[2])
		uses = append(uses, use)
	}
	return uses, nil
}

// number replaces uuids by the numbers that people know the GPUs by.
func number(uses []Use, cards []byte) {
	rows, err := rowsOf(cards)
	if err != nil {
		return
	}
	for _, row := range rows {
		for i := range uses {
			if len(row) == 2 && uses[i].GPU == row[1] {
				uses[i].GPU = row[0]
			}
		}
	}
}

func rowsOf(text []byte) ([][]string, error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.TrimLeadingSpace, r.LazyQuotes = -1, true, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi's answer: %w", err)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
	}
	return rows, nil
}

func bytesOf(n int64) *int64 { return &n }
