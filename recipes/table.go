package recipes

import "slices"

// The language, as tables. What a key means is said once, here.

var commandRule = &rule{
	says:  "a list of words, or text that is split like a shell does",
	forms: sequence | text, item: word, raw: true,
}

var hookRule = &rule{
	says:  "a list of words, or text that is split like a shell does, or a mapping like {command: …, timeout: 10m}",
	forms: sequence | text | mapping, item: word, raw: true, foreign: hookWords,
	keys: []key{
		{"command", commandRule, "what it runs", ""},
		{"timeout", duration, "how long it may take", "5m (after_stop: 1m)"},
	},
}

var envRule = &rule{
	says: "a mapping of names to values", forms: mapping, each: envValue, secret: true,
	named: envName, namesAre: "a variable's name is letters, digits and _",
}

var envValue = &rule{says: "text or a number", forms: scalars, secret: true}

var envFileRule = &rule{says: "a file, or a list of files", forms: text | sequence, item: anyText, check: notEmpty}

var portRule = &rule{says: "a number from 1 to 65535, or auto", forms: integer | text, check: validPort, pattern: `^(auto|[0-9]+)$`, min: 1, max: 65535, plain: true}

var gpusRule = &rule{
	says:  "GPU numbers like [0, 1], or all, none, auto, or {auto: {memory: 18GiB}}",
	forms: sequence | integer | text | mapping, check: validGPUs, pattern: `^(all|none|auto|[0-9GM][0-9A-Za-z/, -]*)$`, max: 999,
	item: &rule{says: "the number or UUID of a GPU", forms: integer | text, check: validGPU, pattern: gpuExpr, max: 999},
	keys: []key{{"auto", &rule{
		says: "a mapping, like {memory: 18GiB}", forms: mapping, keys: []key{
			{"memory", size, "free memory that each must have", "needs: {gpu_memory: …}"},
			{"count", positive, "how many", "1"},
		},
	}, "GPUs are chosen when the task starts", ""}},
}

var groupsRule = &rule{says: "a list of names", forms: sequence, item: &rule{says: "a name like chat", forms: text, check: validName, pattern: nameExpr}}

var extendsRule = &rule{says: "the name of a template or task, or a list of them", forms: text | sequence, item: taskRef, check: validName, pattern: nameExpr}

var readyRule = &rule{
	says: "a mapping, like {http: /health}", forms: mapping,
	oneOf: []string{"http", "tcp", "log", "exec", "completion"},
	with: map[string][]string{
		"status": {"http"}, "body": {"http"}, "json": {"http"}, "api_key": {"http", "completion"}, "headers": {"http", "completion"},
	},
	foreign: readyWords,
	keys: []key{
		{"http", httpPath, "a GET of this path is answered with success (2xx)", ""},
		{"status", httpStatus, "with http: this status instead", "any 2xx"},
		{"body", expr, "with http: the answer's body matches this regular expression", ""},
		{"json", jsonRule, "with http: the answer's JSON has something at this path (models.0.status), or these values at these paths", ""},
		{"tcp", yesNo, "the port takes a connection", "where there is a port"},
		{"log", expr, "a line of the log matches this regular expression", ""},
		{"exec", words_, "this command ends with 0", ""},
		{"completion", yesNo, "the model completes a prompt", ""},
		{"api_key", apiKeyRule, "what http and completion send as the bearer of their Authorization; write ${NAME}, never the key itself", "what the engine is given by its own variable or flag"},
		{"headers", headersRule, "what else http and completion send, to the task's own port alone; write ${NAME} for a secret", ""},
		{"listener", &rule{says: "own or any", forms: text, words: []string{"own", "any"}}, "whose the listening socket may be: any is for servers behind another daemon", "own"},
		{"timeout", duration, "how long it may take; extended while the log, memory or disk reads move", "5m"},
		{"interval", duration, "between two looks", "250ms, and less at first"},
	},
}

var apiKeyRule = &rule{says: "text, like ${API_KEY}", forms: scalars, check: notEmpty, secret: true}

var headersRule = &rule{
	says: "a mapping, like {X-Token: ${TOKEN}}", forms: mapping, secret: true, each: headerRule,
	named: lazy("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"), namesAre: "a header's name has letters, digits and -",
}

var headerRule = &rule{says: "text or a number, on one line", forms: scalars, check: validHeader, secret: true}

var jsonRule = &rule{
	says: "a path like status, or a mapping like {status: ok}", forms: text | mapping, check: notEmpty, each: word,
	named: lazy(`^\S+$`), namesAre: "a path has no spaces",
}

var stopRule = &rule{
	says: "a mapping, like {signal: INT, grace: 30s}", forms: mapping, foreign: stopWords,
	keys: []key{
		{"signal", signalRule, "what asks the command to end", "TERM (shells: HUP)"},
		{"grace", duration, "how long it may take to end", "30s"},
		{"term_grace", duration, "how long the rest of its tree may take after a TERM of its own", "5s"},
		{"detached", &rule{says: "kill or report", forms: text, words: []string{"kill", "report"}}, "what happens to processes that left for a session of their own", "kill (shells: report)"},
		{"spare", &rule{says: "a list of program names", forms: sequence, item: anyText}, "programs that are named and never signalled", ""},
	},
}

var signalRule = &rule{
	says: "the name of a signal, like TERM or INT", forms: text,
	words: []string{"TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"},
	foreign: map[string]string{
		"SIGTERM": "TERM", "SIGINT": "INT", "SIGHUP": "HUP", "SIGQUIT": "QUIT",
		"SIGUSR1": "USR1", "SIGUSR2": "USR2", "SIGKILL": "KILL",
	},
}

var restartRule = &rule{
	says: "no, on-failure, always, or a mapping", forms: text | mapping,
	words: restartPolicies, foreign: restartWords,
	keys: []key{
		{"policy", &rule{says: "no, on-failure or always", forms: text, words: restartPolicies, foreign: restartWords}, "when the command is started again after it ended by itself", "on-failure"},
		{"max", count, "how often in a row", "3"},
		{"backoff", duration, "the wait before the first; it doubles each time", "1s"},
	},
}

var restartPolicies = []string{"no", "on-failure", "always"}

var conditionRule = &rule{
	says: "started, ready or completed", forms: text, words: []string{"started", "ready", "completed"}, foreign: conditionWords,
}

var dependsRule = &rule{
	says:  "a list of tasks, or a mapping of tasks to conditions",
	forms: sequence | mapping, item: taskRef, each: conditionRule, named: taskName, namesAre: taskNameSays,
}

var needsRule = &rule{
	says: "a mapping, like {commands: [vllm]}", forms: mapping, foreign: needsWords,
	keys: []key{
		{"commands", &rule{says: "a list of programs", forms: sequence, item: anyText}, "programs that must be on the PATH", ""},
		{"memory", size, "free memory", ""},
		{"gpu_memory", size, "free memory on each GPU of the task", ""},
		{"disk", size, "free space where its models are kept: in Hugging Face's cache, or its folder", ""},
	},
}

var splits = []string{"even-horizontal", "even-vertical", "main-horizontal", "main-vertical", "tiled"}

var layoutRule = &rule{
	says: "a list of windows", forms: sequence,
	item: &rule{
		says: "a window, like {window: main, panes: [chat]}", forms: mapping, foreign: windowWords,
		keys: []key{
			{"window", &rule{says: "a name without # and \\", forms: text, check: validWindow, pattern: `^[^\x00-\x1f\x7f#\\]{1,100}$`}, "its name", ""},
			{"split", &rule{says: "a tmux layout, like main-vertical", forms: text, words: splits}, "how its panes share it", "tiled"},
			{"panes", &rule{says: "a list of tasks", forms: sequence, item: taskRef}, "the tasks in it", ""},
			{"focus", taskRef, "the pane that has the cursor", "the first"},
		},
	},
}

var engineRef = &rule{says: "the name of an engine", forms: text, check: notEmpty, pattern: nameExpr, plain: true}

// What each kind of task may say. The order is the order of the reference.
var (
	keyEngine  = key{"engine", engineRef, "fills in command, port, ready, stop and needs; each can be said otherwise", ""}
	keyModel   = key{"model", modelRule, "what the engine serves", ""}
	keyCommand = key{"command", commandRule, "the program and its arguments: a list runs as it is, text is split like a shell does", "the engine's"}
	keyArgs    = key{"args", words_, "more arguments, after the command", ""}
	keyShell   = key{"shell", yesNo, "run the command's text by /bin/sh", "false"}
	keyPort    = key{"port", portRule, "a number, or auto: a free one at the start; ${port} in command, args, env and exec", "the engine's"}
	keyHost    = key{"host", &rule{says: "a host name or address", forms: text, check: validHost, pattern: `^[^ \t\r\n/]+$`, plain: true}, "the address that an engine listens on", "127.0.0.1"}
	keyGPUs    = key{"gpus", gpusRule, "the GPUs that the task sees, numbered as nvidia-smi does", "as the caller's"}
	keyDir     = key{"dir", dirRule, "the folder to run in", "the recipe's folder"}
	keyEnv     = key{"env", envRule, "environment variables; their values are never shown", ""}
	keyEnvFile = key{"env_file", envFileRule, "files of NAME=value lines; env wins over them", ""}
	keyReady   = key{"ready", readyRule, "how the server shows that it answers", "tcp where there is a port"}
	keyStop    = key{"stop", stopRule, "how the task is ended", ""}
	keyRestart = key{"restart", restartRule, "when the command is started again", "no"}
	keyRetries = key{"retries", count, "how often a failed job is tried again", "0"}
	keyDepends = key{"depends_on", dependsRule, "tasks that must be ready (servers), completed (jobs) or started before", ""}
	keyExtends = key{"extends", extendsRule, "templates or tasks whose keys it takes over; its own win", ""}
	keyGroups  = key{"groups", groupsRule, "names under which it can be started together with others", ""}
	keyReplica = key{"replicas", &rule{says: "a number from 1 to 64", forms: integer, check: validReplicas, min: 1, max: maxReplicas}, "so many of it, NAME-1, NAME-2, …; a numbered port counts up; ${replica} counts from 1, ${index} from 0", "1"}
	keyTryout  = key{"rehearse", commandRule, "what runs instead when the recipe is rehearsed; an engine needs none", "engines: the pilot, others: as they are"}
	keyBefore  = key{"before", hookRule, "a command that must end with 0 before each start of the task; its output goes to the task's log", ""}
	keyOnReady = key{"after_ready", hookRule, "a command that runs once the task answers; that it fails is told, and stops nothing", ""}
	keyAfter   = key{"after_stop", hookRule, "a command that runs once the task is over; that it fails is told", ""}
	keyNeeds   = key{"needs", needsRule, "what the host must have", "the engine's"}
)

var serverRule = &rule{
	says: "a mapping, like {engine: vllm, model: NAME}", forms: mapping,
	foreign: words(taskWords, map[string]string{"retries": "restart: {policy: on-failure, max: …}"}),
	keys: []key{keyEngine, keyModel, keyCommand, keyArgs, keyShell, keyHost, keyPort, keyGPUs, keyDir,
		keyEnv, keyEnvFile, keyReady, keyStop, keyRestart, keyDepends, keyNeeds, keyBefore, keyOnReady, keyAfter, keyTryout, keyExtends, keyGroups, keyReplica},
}

var jobRule = &rule{
	says: "a mapping, like {command: [hf, download, NAME]}", forms: mapping,
	foreign: words(taskWords, map[string]string{"restart": "retries", "timeout": "command: [timeout, 10m, …]"}),
	keys: []key{keyEngine, keyModel, keyCommand, keyArgs, keyShell, keyGPUs, keyDir, keyEnv, keyEnvFile, keyStop, keyRetries,
		keyDepends, keyNeeds, keyBefore, keyAfter, keyTryout, keyExtends, keyGroups},
}

var shellRule = &rule{
	says: "a mapping; {} is your own shell", forms: mapping | null, foreign: taskWords,
	keys: []key{keyCommand, keyArgs, keyShell, keyGPUs, keyDir, keyEnv, keyEnvFile, keyStop, keyDepends, keyNeeds, keyBefore, keyAfter, keyExtends, keyGroups},
}

func tasksOf(kind string, r *rule) *rule {
	return &rule{says: "a mapping of names to " + kind + "s", forms: mapping, each: r, task: kind,
		named: taskName, namesAre: taskNameSays}
}

var (
	serversRule = tasksOf("server", serverRule)
	jobsRule    = tasksOf("job", jobRule)
	shellsRule  = tasksOf("shell", shellRule)
)

// What a template says is checked where it is used, by the kind of task.
var templatesRule = &rule{
	says: "a mapping of names to parts of tasks", forms: mapping, named: taskName, namesAre: taskNameSays, raw: true,
	each: &rule{says: "a mapping, like {engine: vllm, gpus: [0]}", forms: mapping, foreign: taskWords, raw: true, keys: allKeys(serverRule, jobRule)},
}

// What a profile says is checked when it is laid over the recipe.
var profilesRule = &rule{
	says: "a mapping of names to changes", forms: mapping, named: taskName, namesAre: taskNameSays, raw: true,
	each: &rule{says: "a mapping, like {vars: {model: NAME}}", forms: mapping, raw: true, keys: []key{
		{"vars", varsRule, "other values", ""},
		{"servers", serversRule, "other servers, or changes to them", ""},
		{"jobs", jobsRule, "other jobs, or changes to them", ""},
		{"shells", shellsRule, "other shells, or changes to them", ""},
		{"layout", layoutRule, "another layout", ""},
	}},
}

// allKeys are the keys of several kinds of task.
func allKeys(rules ...*rule) []key {
	var all []key
	for _, r := range rules {
		for _, k := range r.keys {
			if !slices.ContainsFunc(all, func(old key) bool { return old.name == k.name }) {
				all = append(all, k)
			}
		}
	}
	return all
}

var varsRule = &rule{
	says: "a mapping of names to texts", forms: mapping, each: word,
	named: varsName, namesAre: "a variable's name is letters, digits and _",
}

var topRule = &rule{
	says: "a mapping with servers, jobs or shells", forms: mapping, foreign: topWords,
	keys: []key{
		{"name", &rule{says: "a name like my-chat", forms: text, check: validName, pattern: nameExpr}, "the name of the run", "the file's, or for hob.yaml the folder's"},
		{"vars", varsRule, "texts for ${name}; what is not here comes from the environment", ""},
		{"include", &rule{says: "a file, or a list of files", forms: text | sequence, item: anyText, check: notEmpty, raw: true}, "recipes that this one is laid over", ""},
		{"servers", serversRule, "tasks that answer until they are stopped", ""},
		{"jobs", jobsRule, "tasks that have an end: a download, a build", ""},
		{"shells", shellsRule, "panes for a person to type in", ""},
		{"templates", templatesRule, "parts of tasks, for extends", ""},
		{"profiles", profilesRule, "changes that are laid over the recipe when asked for", ""},
		{"layout", layoutRule, "windows and panes", "a window for each task"},
	},
}
