package tasks

import "hob/identity/cut"

// finish ends the keeper: the output is read to its end and on disk before the
// record says that the tree is empty, since a stop may be waiting for just that.
func (k *keeper) finish() int {
	cut.Point("keeper", "finish")
	k.ready.end()
	k.gpus.end(k)
	k.term.drain()
	k.leaveCgroup()
	k.rec.Empty = k.reaper.Empty()
	k.rec.Left = !k.rec.Empty && (!k.afterOnly || k.onlySpared()) // it ends with something below it only where that is left alone (decide)
	k.flush(k.h.Now())
	if !sameKeeper(k.rec, k.written) {
		k.complain("keeper.json", k.save())
	}
	k.release()
	k.term.close()
	return exitCode(k.life.exit)
}

// exitCode is the command's, as a shell would give it.
func exitCode(e *Exit) int {
	switch {
	case e == nil:
		return keeperFailed
	case e.Code != nil:
		return *e.Code
	case e.Signal == "":
		return keeperFailed
	}
	if sig, err := signalNamed(e.Signal); err == nil {
		return 128 + int(sig)
	}
	return keeperFailed
}
