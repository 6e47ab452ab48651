// Package tasks holds the records of runs (store), the life cycle that acts on
// them (manager), the keeper that is each pane's first process, and readiness.
//
// # Where what is
//
// The files are named by their room:
//
//   - records.go has the records as types, this page every field of them, store*.go
//     reads and writes them. version.go says which of other hobs are understood.
//   - look.go reads a task's records and verifies the processes that they name;
//     state.go decides from that alone which state the task is in.
//   - manager_VERB.go is what a verb does, on manager.go. What several verbs do is in
//     manager_start.go and stopper.go, manager_hooks.go and manager_settle.go.
//   - Before a start: preflight.go, with ports.go, gpus.go, given.go, models.go,
//     expects.go and holders.go (what the host has, and who holds it); plan.go is
//     the same for --dry-run.
//   - At a start: groups.go (which tasks), windows.go and panes*.go (where each
//     pane goes), milestones.go and follow.go (what is waited for).
//   - At a stop: below.go (where the caller stands), ended.go, resume.go, silent.go (a
//     keeper that does not answer), deadpanes.go, servers.go (the tmux server).
//   - amiss.go names records that a stop will need and a look does not.
//   - keeper*.go is the process in the pane: keeper_decide.go decides what is next,
//     keeper_loop.go does it, the others are what there is to do.
//   - To look: list.go, names.go, logs.go, watch.go, why.go, doctor*.go, strays.go (keepers
//     without records).
//   - What others started: adopt*.go, legacy.go (another tool's records), freeze.go.
//
// # The state folder
//
// It is --home, else $HOB_HOME, else $XDG_STATE_HOME/hob, else
// ~/.local/state/hob. Folders are 0700 and files 0600. Records are JSON with a
// schema number (now 1). They are replaced whole: temp file, fsync, rename,
// fsync of the folder; files that are written together are synced together.
//
// Records that only tell of running processes are not synced, since those processes
// end with the host: the keeper's record, the rolling capture, and that a task is
// up. So a crash of hob never tears a record, and a crash of the host may tear
// only those. When the boot that a run was last brought up in is over (its starter
// says so), such a record is known to be torn by that: the task is lost, as all that
// ran then, and whoever acts on it next renames the file, as it is, to <record>.torn.
//
// Files whose names begin with a dot are no records. Locks
// are flock(2) locks on files that stay. Times are RFC 3339, durations are
// nanoseconds, and a number that is not known is null. A reader leaves alone
// the fields that it does not know, refuses a newer schema, and keeps a file
// that it cannot trust as it is. What a keeper and the rest of hob expect of each
// other has a number of its own (protocol, in keeper.json): a hob stops keepers of
// an older one as any other, and leaves a task whose living keeper is of a newer
// one as it leaves a newer record.
//
//	runs/<run>/run.json                   the run
//	runs/<run>/events.jsonl               what happened, a line each; bounded, the older half is dropped
//	runs/<run>/run.lock                   held for one read-modify-write of run.json
//	runs/<run>/tasks/<task>/op.lock       held through a start, stop or restart of the task; its bytes are room that the records of a stop may use up
//	runs/<run>/tasks/<task>/task.json     the task; written by the holder of op.lock
//	runs/<run>/tasks/<task>/spec.json     what the keeper starts; may hold secrets
//	runs/<run>/tasks/<task>/keeper.json   what the keeper knows; written by the keeper
//	runs/<run>/tasks/<task>/capture.json  the process tree; by the keeper while up, then by whoever stops
//	runs/<run>/tasks/<task>/exit.json     how the command ended; written by the keeper
//	runs/<run>/tasks/<task>/stop.json     asks the keeper to stop its task itself
//	runs/<run>/tasks/<task>/report.json   the last sweep
//	runs/<run>/tasks/<task>/log           output, and log.1 … older; written by the keeper
//	runs/<run>/tasks/<task>/<record>.torn what the end of a boot has torn of a record, as it was found
//	.gpu.json                             what nvidia-smi said last; a cache
//	.gpu.lock                             held by the keeper that asks it, for all of this state folder
//	server.lock                           held while the tmux server is started or ended and ports are given out
//	socket.lock                           held while a tmux server is made to bind its socket again
//	server.json                           the tmux server that was last used
//	reap.lock                             held by the one reaper at work; a verb that finds it held goes on without
//	archive/<run>-<time>/                 ended runs whose name was used again
//	left/<cgroup>.json                    a cgroup that somebody was still in when its task was over; the reaper removes both
//
// Who takes more than one lock takes them in this order, so that two never wait
// for each other: reap.lock, the op.lock of each task by name, server.lock,
// run.lock, socket.lock. Nothing that lasts as long as a stop may
// is done under server.lock.
//
// # ref
//
// A process as written down; a claim until it is verified.
//
//	machine      machine id; "" when the host has none
//	host         host name
//	boot         boot id
//	pidns        pid namespace: inode, and the kernel's unique id where it has one
//	timens       time namespace, the same way
//	pid          process id
//	pidfs        inode of its pidfd, unique per boot (Linux 6.9 and later)
//	start        start token: the source, a colon, an opaque value
//	uid          real user id
//	recorded_at  when it was written down
//
// # cgroup
//
// A cgroup (version 2) as written down; a claim until it is opened, and has that inode.
//
//	boot   boot id
//	path   its directory
//	inode  of the directory: the kernel's id of the cgroup, never given twice in one boot
//	mount  where its filesystem was mounted
//	root   inode of that
//
// # run.json
//
//	schema        version of the record
//	name          name of the run
//	id            128 random bits, in HOB_RUN_ID of all that it starts
//	lifetime      contained or detached
//	owner         ref of the hob that a contained run belongs to
//	starter       ref of the hob that last brought it up; while that lives the run does
//	recipe        path or gallery name of the recipe
//	dir           folder of the recipe
//	resolved      the recipe as resolved, environment values left out
//	digest        digest of the resolved recipe
//	rehearse      whether the pilot stands in for every engine
//	set           variables that were given on the command line
//	profiles      profiles of the recipe that were laid over it
//	tasks         names of the tasks, in start order
//	ports         the port of each task that has one, from before it is started
//	gpus          of each task that was given GPUs or names its own: their numbers, and what it takes of each (0: not said)
//	tmux          where its panes are: socket, session, server
//	tmux.socket   path of the tmux server's socket
//	tmux.session  tmux's id of the session
//	tmux.server   ref of the tmux server
//	created_at    when the run was made
//	updated_at    when the record was written
//	hob           version that wrote it
//
// # server.json
//
//	schema      version of the record
//	socket      path of the tmux server's socket
//	server      ref of the tmux server
//	updated_at  when the record was written
//
// # events.jsonl
//
//	at    when
//	verb  which verb did it: up, down, keeper, …
//	task  of which task
//	pid   of the hob that wrote the line
//	what  what happened
//
// # task.json
//
//	schema       version of the record
//	run          name of the run
//	task         name of the task
//	kind         server, job or shell
//	engine       name of the engine
//	state        a claim; what holds is derived from the evidence at each look
//	nonce        of the start; the keeper starts nothing unless the spec's is equal
//	reason       of the stop that is under way or was last
//	pane         where the keeper runs: window, pane, tty, pid
//	pane.window  tmux's id of the window
//	pane.pane    tmux's id of the pane
//	pane.tty     its terminal
//	pane.pid     pid of its first process, as tmux said
//	pane.server  ref of the tmux server whose ids these are
//	port         the task's port
//	url          where it answers
//	error        why it failed to start
//	started_at   when it was started
//	ended_at     when it ended
//	updated_at   when the record was written
//	after_stop   when the hook after_stop was begun: it runs once
//
//	adopted               of a task that hob did not start: how it came under its care
//	adopted.command       ref of its root, which a person asked for by the pane
//	adopted.first         ref of the pane's first process: a shell, which stays, or the root itself
//	adopted.pane          where it runs; only read
//	adopted.pane.window   tmux's id of the window
//	adopted.pane.pane     tmux's id of the pane
//	adopted.pane.tty      its terminal
//	adopted.pane.pid      pid of its first process, as tmux said
//	adopted.pane.server   null: adopted.tmux names it
//	adopted.tmux          the person's tmux server, which is only read
//	adopted.tmux.socket   path of its socket
//	adopted.tmux.session  tmux's id of the session
//	adopted.tmux.server   ref of the tmux server
//	adopted.at            when
//
// # spec.json
//
// Of an adopted task it is what was found.
//
//	schema             version of the record
//	run                name of the run
//	task               name of the task
//	run_id             the run's id
//	nonce              of the start
//	kind               server, job or shell
//	engine             name of the engine
//	args               the command, as it is executed
//	dir                folder that it runs in
//	env                its whole environment, but for what the keeper sets
//	port               the task's port, 0 when it has none
//	ready              how the keeper finds out whether it answers
//	ready.http         path or loopback URL to ask
//	ready.status       status of its answer to http, 0 for any 2xx
//	ready.body         regular expression that the answer's body must match
//	ready.json         what the answer's JSON must have
//	ready.json.path    where in it
//	ready.json.value   what stands there, null for anything that does not say no
//	ready.tcp          a connection is enough
//	ready.log          regular expression that the log must match
//	ready.exec         command that must succeed
//	ready.completion   a real completion of one token
//	ready.model        model to ask for it
//	ready.api_key      the key to ask with: a secret
//	ready.headers      what else goes with a question by HTTP
//	ready.headers.name   name of a header
//	ready.headers.value  its value: a secret
//	ready.listener     "any" when the listener need not be the task's own
//	ready.timeout      how long it may take
//	ready.interval     how long between two attempts
//	stop               how it is ended
//	stop.signal        number of the stop signal
//	stop.grace         how long the command has to follow it
//	stop.term_grace    how long the rest has to follow TERM
//	stop.detached      what becomes of detached processes: kill or report
//	stop.spare         names of commands that are left alone
//	restart            what the keeper does when the command ends by itself
//	restart.policy     no, on-failure or always
//	restart.max        how often
//	restart.backoff    how long it waits before the first, doubled each time
//	log                bounds of the log
//	log.max_bytes      size at which it is rotated
//	log.keep           how many older ones are kept
//	lifetime           contained or detached
//	limits             umask, resource limits (SOFT:HARD), nice level and processors of the caller, by name
//	owner              ref of the hob that a contained run belongs to
//	before             command that must end with 0 before each start
//	before.args        its arguments
//	before.timeout     how long it may take
//	after_ready        command that runs once the task answers
//	after_ready.args   its arguments
//	after_ready.timeout how long it may take
//	after_stop         command that runs once the task is over
//	after_stop.args    its arguments
//	after_stop.timeout how long it may take
//
// # keeper.json
//
//	schema        version of the record
//	nonce         of the start
//	protocol      version of what the keeper understands
//	version       of the hob that the keeper is
//	keeper        ref of the keeper
//	command       ref of the command; null until it is started, and between restarts
//	pane          tmux's id of its pane
//	tmux          ref of the tmux server whose id that is
//	ready         whether it answers now
//	was_ready     whether it ever did since its last start
//	ready_at      when it first did
//	ready_note    why it does not
//	deadline_hit  whether the time to become ready has passed
//	restarts      how often the command was started again
//	started_at    when the command was last started
//	hook          the hook that is under way: before, after_ready or after_stop
//	hook_note     why the last one failed
//	last_log      when it last wrote something
//	last_line     the last line that it wrote
//	memory_bytes  resident memory of the tree
//	measured_at   when that was read; an equal figure read later is not written again
//	gpu_bytes     GPU memory of the tree, by the last look of a keeper of this state folder
//	gpu_at        when that was
//	gpu_note      why it is not known
//	empty         wait said ECHILD: nothing of the tree is left in the keeper's pid namespace
//	left          it has ended, and all that lived below it was left alone on purpose
//	stamp         number that it and all below it bear (on Linux their limit of file locks); 0: none
//	cgroup        the cgroup that the command is started in; null where none can be made, and once it is removed
//	cgroup_note   why there is none
//	updated_at    when the record was written
//
// # left/<cgroup>.json
//
//	schema      version of the record
//	run         name of the run
//	task        name of the task
//	by          ref of who found somebody in it
//	cgroup      the cgroup
//	frozen_at   when a stop that was cut off froze it, if it could not be thawed yet
//	updated_at  when the record was written
//
// # .gpu.json
//
//	schema      version of the record
//	at          when nvidia-smi was asked
//	every       how long it is not asked again
//	uses        what each process held on each GPU
//	uses.pid    process id
//	uses.gpu    number of the GPU
//	uses.bytes  how much; null when the driver does not say
//	note        why nothing is known
//
// # exit.json
//
//	schema      version of the record
//	nonce       of the start
//	code        exit code; null when a signal ended it
//	signal      the signal's name; "" when it exited
//	error       why it could not be started
//	at          when
//	restart_at  when the keeper starts the command again, if it does
//
// # stop.json
//
//	schema  version of the record
//	nonce   of the start that is to be stopped
//	reason  the report's
//	at      when it was asked for
//
// # capture.json
//
//	schema                  version of the record
//	run                     name of the run
//	task                    name of the task
//	taken_at                when
//	phase                   rolling while the task is up, stop once a stop has begun
//	members                 the processes
//	members.ref             ref of the process
//	members.parent          pid of its parent when it was captured
//	members.sid             its kernel session
//	members.pgid            its process group
//	members.args            its command line
//	members.evidence        why it is believed to be the task's
//	members.seen_at         when it was last seen
//	members.signals         what was sent to it
//	members.signals.signal  name of the signal
//	members.signals.at      when it was sent
//	members.fate            what became of it
//	members.ended_at        when it ended
//	members.detached        adopted by the keeper, in another session than the command's
//	members.boundary        a tmux server or another hob's keeper, or below one: never signalled
//	members.spare           stop.spare names it, or something above it: left alone
//	members.note            what else there is to say of it
//	notes                   what could not be seen
//	cgroup                  the cgroup that the keeper started the command in; null where there is none
//	guests               refs of those that were seen in it and are not the task's to end, or not started by it at all: since then being in it proves nothing
//	frozen_at               when a stop began to freeze the cgroup; null once that has thawed it. A hob that finds it set thaws it, unless that stop is still at work
//
// # report.json
//
//	schema                 version of the record
//	run                    name of the run
//	task                   name of the task
//	reason                 down, restart, exited, hangup, terminated, sweep, reap or owner
//	started_at             when the stop began
//	ended_at               when it was over
//	host                   how much of the host was seen
//	host.os                operating system
//	host.boot              boot id
//	host.inspection        full, partial or none
//	host.notes             what could not be seen
//	members                the captured processes
//	members.pid            process id
//	members.start          start token
//	members.parent         pid of its parent
//	members.args           its command line
//	members.evidence       why it is believed to be the task's
//	members.signals        what was sent to it
//	members.fate           what became of it
//	members.gpu_bytes      GPU memory that it held
//	members.memory_bytes   resident memory that it held
//	members.note           what else there is to say of it
//	members.sent           the signals, with the time of each
//	members.sent.signal    name of the signal
//	members.sent.at        when it was sent
//	members.ended_at       when its end was seen
//	lookalikes             processes that look like the task's; none was signalled
//	lookalikes.pid         process id
//	lookalikes.start       start token
//	lookalikes.args        its command line
//	lookalikes.user        whose it is
//	lookalikes.started_at  when it was started
//	lookalikes.why         what makes it look like one
//	lookalikes.note        what else there is to say of it
//	lookalikes.keeper      the living keeper of another task that has it
//	lookalikes.keeper.pid  process id of that keeper
//	lookalikes.keeper.home its state folder
//	lookalikes.keeper.run  the run that it keeps a task of
//	lookalikes.keeper.task that task
//	ports                  the task's ports
//	ports.port             number
//	ports.state            free, held or unknown
//	ports.pid              who holds it
//	ports.note             what else there is to say of it
//	verdict                clean, survivors or unverified
//	dry_run                nothing was done; never in the file
package tasks
