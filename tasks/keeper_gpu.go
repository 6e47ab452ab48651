package tasks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hob/identity"
	"hob/sweep/gpu"
)

// How often the GPUs are looked at. nvidia-smi takes its time, and wakes a GPU
// that sleeps: one keeper of a state folder asks for all of them.
const (
	gpuSoon   = time.Second      // after the command's start; and where another keeper is at it
	gpuEvery  = 10 * time.Second // at most
	gpuSeldom = time.Minute      // at least
)

// gpuWatch is how a keeper comes to know the GPU memory of its tree.
type gpuWatch struct {
	at     time.Time          // of the next look; zero: none
	cancel context.CancelFunc // of nvidia-smi under way
	life   int                // what was asked for an earlier life is not listened to

	askAt time.Time // before a restart: when nvidia-smi is asked again
	free  bool      // it has said that nothing of the life before is counted any more
	held  string    // or what is
}

// begin looks out for a command that has just been started.
func (w *gpuWatch) begin(k *keeper) {
	w.end(k)
	w.at, k.rec.GPUNote = k.h.Now().Add(gpuSoon), gpu.NotRead
}

// end stops looking: nothing of ours may be in the tree of a task that ends.
func (w *gpuWatch) end(k *keeper) {
	k.rec.GPUBytes, k.rec.GPUAt, k.rec.GPUNote = nil, nil, ""
	w.at, w.askAt, w.free, w.held = time.Time{}, time.Time{}, false, ""
	w.life++
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// tick takes the figures that some keeper of this state folder has read, or reads
// them for all, if they are due.
func (w *gpuWatch) tick(k *keeper, now time.Time) {
	if w.at.IsZero() || w.cancel != nil || now.Before(w.at) {
		return
	}
	if v := k.run.store.readGPUs(); v.fresh(now) {
		w.take(k, v, now)
		return
	}
	smi := k.smi()
	if smi == "" {
		w.take(k, nobodyAsked(now), now)
		return
	}
	unlock, ok, err := tryLock(filepath.Join(k.run.store.Home, gpuLock))
	if !ok {
		k.complain("gpu.lock", err)
		w.at = now.Add(gpuSoon)
		why := "another keeper is asking nvidia-smi, which has not answered yet"
		if err != nil {
			why = err.Error()
		}
		w.unknown(k, "GPU memory is not known: "+why)
		return
	}
	w.unknown(k, "GPU memory is not known: nvidia-smi has not answered yet")
	w.ask(k, smi, unlock)
}

// unknown says why nothing is known, where nothing is: what was read has its time.
func (w *gpuWatch) unknown(k *keeper, why string) {
	if k.rec.GPUBytes == nil {
		k.rec.GPUNote = why
	}
}

// ask runs nvidia-smi beside the loop, and writes down what it says.
func (w *gpuWatch) ask(k *keeper, smi string, unlock Unlock) {
	ctx, cancel := context.WithCancel(bg)
	w.cancel = cancel
	life := w.life
	go func() {
		defer unlock()
		began := k.h.Now()
		v := gpuRecord{Schema: Schema, At: began}
		uses, err := k.gpuReader(smi).NVIDIA(ctx)
		if v.Uses = uses; err != nil {
			v.Note = err.Error()
		}
		v.Every = min(max(gpuEvery, lookRatio*k.h.Now().Sub(began)), gpuSeldom)
		if ctx.Err() == nil {
			err = k.run.store.writeGPUs(v)
		}
		k.post(func() {
			if w.life == life {
				cancel()
				w.cancel = nil
				k.complain("gpu.json", err)
				w.take(k, v, k.h.Now())
			}
		})
	}()
}

// returned reports whether the driver has taken back the GPU memory of the life
// before. It asks beside the loop. A driver that cannot be asked is no reason to
// wait: the command will say so itself.
func (w *gpuWatch) returned(k *keeper, now time.Time) bool {
	smi := k.smi()
	switch {
	case w.free || smi == "":
		return true
	case w.cancel != nil || now.Before(w.askAt):
		return false
	}
	ctx, cancel := context.WithCancel(bg)
	w.cancel = cancel
	life, pids := w.life, k.life.pids
	go func() {
		uses, err := k.gpuReader(smi).NVIDIA(ctx)
		k.post(func() {
			if w.life != life {
				return
			}
			cancel()
			w.cancel = nil
			w.held = k.unreturned(uses, pids)
			w.free, w.askAt = err != nil || w.held == "", k.h.Now().Add(gpuSoon)
		})
	}()
	return false
}

// unreturned says which memory the driver still counts for processes that have
// ended, "" for none. A number may be another's by now.
func (k *keeper) unreturned(uses []gpu.Use, pids []int) string {
	for _, u := range uses {
		if !slices.Contains(pids, u.PID) {
			continue
		}
		if pin, err := k.h.Open(u.PID); err == nil {
			_ = pin.Close()
			continue
		}
		return fmt.Sprintf("memory of GPU %s is still counted for pid %d, which has ended", u.GPU, u.PID)
	}
	return ""
}

// take sums up what the tree held at the time of a look.
func (w *gpuWatch) take(k *keeper, v gpuRecord, now time.Time) {
	w.at = now.Add(gpuSeldom)
	if next := v.At.Add(v.Every); v.Every > 0 && next.Before(w.at) {
		w.at = next
	}
	if soon := now.Add(gpuSoon); w.at.Before(soon) {
		w.at = soon
	}
	k.rec.GPUBytes, k.rec.GPUAt, k.rec.GPUNote = nil, nil, ""
	switch f := k.h.Facts(); {
	case f.OS == "linux" && !f.InitPIDNS:
		k.rec.GPUNote = gpu.OtherPIDs
	case v.Note != "":
		k.rec.GPUNote = v.Note
	case v.At.Before(k.life.began):
		k.rec.GPUNote = gpu.NotRead
	default:
		k.rec.GPUBytes, k.rec.GPUNote = k.sumGPU(v)
		if k.rec.GPUBytes != nil {
			k.rec.GPUAt = &v.At
		}
	}
}

// sumGPU is what the members held that were there at the time of the look: the
// number of one that came later may have been another's then.
func (k *keeper) sumGPU(v gpuRecord) (*int64, string) {
	var pids []int
	unknown := k.tree(func(pin identity.Handle) { pids = append(pids, pin.Ref().PID) })
	if unknown {
		return nil, "a process of the task cannot be verified"
	}
	late := map[int]bool{}
	for _, m := range k.capture.Members {
		late[m.Ref.PID] = m.Ref.RecordedAt.After(v.At.Add(2 * lookEvery))
	}
	r := gpu.Reader{Ask: v.ask}.Read(bg, pids)
	var total sum
	for _, pid := range pids {
		if n := r.Of(pid); n != nil && late[pid] {
			continue
		} else if n != nil {
			total.add(*n, true)
		} else {
			total.add(0, false)
		}
	}
	if n := total.known(); n != nil {
		return n, ""
	}
	if len(r.Notes) > 0 {
		return nil, strings.Join(r.Notes, "; ")
	}
	return nil, "the driver does not say how much GPU memory a process holds"
}

// smi is the path of nvidia-smi, by the task's own PATH; "" when it is not there.
func (k *keeper) smi() string {
	path, err := resolve("nvidia-smi", k.spec.Dir, k.spec.Env)
	if err != nil {
		return ""
	}
	return path
}

// gpuReader asks nvidia-smi as a child of the keeper, whom alone its end reaches.
func (k *keeper) gpuReader(smi string) gpu.Reader {
	return gpu.Reader{SMI: smi, Run: func(ctx context.Context, argv []string) ([]byte, error) {
		var env []string
		for _, name := range []string{"PATH", "HOME", "LD_LIBRARY_PATH"} { // and no secrets
			if v := valueOf(k.spec.Env, name); v != "" {
				env = append(env, name+"="+v)
			}
		}
		return k.output(ctx, argv, env)
	}}
}

// readGPU looks at the GPUs now, for a stop.
func (k *keeper) readGPU(ctx context.Context, pids []int) gpu.Reading {
	smi := k.smi()
	r := k.gpuReader(smi)
	if smi == "" {
		r.Ask = nobodyAsked(time.Time{}).ask
	}
	return r.Read(ctx, pids)
}

// output runs a program to its end and returns what it has written.
func (k *keeper) output(ctx context.Context, argv, env []string) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text := make(chan []byte, 1)
	go func() {
		var buf bytes.Buffer
		_, _ = io.Copy(&buf, io.LimitReader(r, maxRecord))
		text <- buf.Bytes()
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return nil, err
	}
	defer null.Close()
	code, err := k.runChild(ctx, argv, env, "/", []uintptr{null.Fd(), w.Fd(), null.Fd()})
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(time.Second)) // a grandchild may hold it open
	out := <-text
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	return out, err
}
