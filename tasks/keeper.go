package tasks

import "hob/identity"

// RunKeeper is `hob keeper SPEC`: the first process of a pane and the parent of
// the task's command. spec is the path of spec.json in its task folder. It
// returns the exit code of the keeper process.
func RunKeeper(h identity.Host, spec, version string) int { panic("not written yet") }
