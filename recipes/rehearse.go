package recipes

// rehearsed reports whether something stands in for the task: the pilot for its
// engine, or what it says itself. All else runs as it is.
func (l *loader) rehearsed(d *draft) bool {
	return l.opts.Rehearse && (d.node.has("rehearse") || d.engine != nil && d.engine.name != pilotEngine)
}

const pilotEngine = "pilot"

// rehearsal is the pilot's command line in the shape of the task's engine. What
// the engine would have been started with stands after "--": the pilot takes from
// it what shapes the tree (tensor parallelism).
func (l *loader) rehearsal(d *draft) []string {
	port := "${port}"
	if p, ok := d.own.own["port"]; ok {
		port = p
	}
	shape := d.engine.tree.get("rehearse").words()
	if d.kind == "job" { // what it would do is only named
		return append(shape, d.task.Command...)
	}
	model := d.node.get("model").or(d.name)
	argv := []string{l.opts.self(), "pilot", "serve", "--host", d.own.own["host"], "--port", port, "--model", model}
	argv = append(argv, shape...)
	return append(append(argv, "--"), d.task.Command...)
}
