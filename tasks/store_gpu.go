package tasks

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"hob/sweep/gpu"
)

const (
	gpuFile = ".gpu.json"
	gpuLock = ".gpu.lock" // held by the keeper that asks nvidia-smi
)

// gpuRecord is .gpu.json: what nvidia-smi said last. It is a cache, not a record:
// one that cannot be read is as good as none, and is replaced.
type gpuRecord struct {
	Schema int           `json:"schema"`
	At     time.Time     `json:"at"`
	Every  time.Duration `json:"every"` // how long it is taken for news
	Uses   []gpu.Use     `json:"uses"`
	Note   string        `json:"note,omitempty"` // why there are none
}

// fresh reports whether it is news still. One from the future is of a clock that
// was set back.
func (v gpuRecord) fresh(now time.Time) bool {
	age := now.Sub(v.At)
	return v.Schema == Schema && age < v.Every && age > -v.Every
}

// nobodyAsked is a look where there is no nvidia-smi.
func nobodyAsked(now time.Time) gpuRecord { return gpuRecord{At: now} }

// ask is what nvidia-smi said, for a gpu.Reader.
func (v gpuRecord) ask(context.Context) ([]gpu.Use, error) {
	if v.Every == 0 {
		return nil, gpu.ErrNoSMI
	}
	return v.Uses, nil
}

func (s *Store) readGPUs() (v gpuRecord) {
	data, err := readFile(filepath.Join(s.Home, gpuFile))
	if err != nil || json.Unmarshal(data, &v) != nil {
		return gpuRecord{}
	}
	return v
}

func (s *Store) writeGPUs(v gpuRecord) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(s.Home, gpuFile), data, passing)
}
