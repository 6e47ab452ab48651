package recipes

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/kballard/go-shellquote"
)

// What other tools call what hob has another word for. A hint that ends in a
// single word is that word; others are sentences.
var topWords = map[string]string{
	"services": "servers", "processes": "servers", "programs": "servers", "models": "servers",
	"apps": "servers", "procs": "servers", "containers": "servers", "server": "servers", "job": "jobs", "shell": "shells",
	"tasks":   "servers, jobs or shells",
	"windows": "layout", "panes": "layout", "variables": "vars", "var": "vars", "params": "vars",
	"session": "name", "session_name": "name", "project": "name", "title": "name",
	"root": "dir, under each task", "start_directory": "dir, under each task",
	"environment": "env, under each task", "env": "env, under each task", "env_file": "env_file, under each task",
	"volumes": "", "networks": "", "version": "",
}

var taskWords = map[string]string{
	"cmd": "command", "run": "command", "exec": "command", "entrypoint": "command", "script": "command", "program": "command",
	"shell_command": "command, with shell: true", "start": "command",
	"environment": "env", "envs": "env", "env_vars": "env", "variables": "env",
	"envfile": "env_file", "env-file": "env_file", "env_files": "env_file", "dotenv": "env_file",
	"working_dir": "dir", "workdir": "dir", "cwd": "dir", "chdir": "dir", "directory": "dir", "working_directory": "dir",
	"root": "dir", "start_directory": "dir", "path": "dir",
	"healthcheck": "ready", "health_check": "ready", "health": "ready", "readiness": "ready", "readiness_probe": "ready",
	"readinessprobe": "ready", "liveness_probe": "ready", "checkendpoint": "ready", "ready_when": "ready", "probe": "ready",
	"ports": "port", "expose": "port", "listen": "port",
	"depends": "depends_on", "dependson": "depends_on", "requires": "depends_on", "after": "depends_on", "links": "depends_on", "wants": "depends_on",
	"gpu": "gpus", "devices": "gpus", "device": "gpus", "gpu_ids": "gpus", "deploy": "gpus, and needs", "runtime": "gpus",
	"cuda_visible_devices": "gpus",
	"model_id":             "model", "model_path": "model", "repo": "model", "repo_id": "model", "hf_model": "model", "weights": "model",
	"flags": "args", "arguments": "args", "extra_args": "args", "options": "args",
	"backend": "engine", "type": "engine", "provider": "engine",
	"autorestart": "restart", "auto_restart": "restart", "restart_policy": "restart", "availability": "restart",
	"stop_signal": "stop: {signal: …}", "kill_signal": "stop: {signal: …}", "stopsignal": "stop: {signal: …}",
	"stop_grace_period": "stop: {grace: …}", "kill_timeout": "stop: {grace: …}", "stopwaitsecs": "stop: {grace: …}", "stop_timeout": "stop: {grace: …}",
	"shutdown": "stop", "cmdstop": "stop", "kill": "stop",
	"resources": "needs", "requirements": "needs", "mem_limit": "needs: {memory: …}",
	"before_start": "before", "pre_start": "before", "prestart": "before", "pre": "before", "setup": "before", "execstartpre": "before",
	"post_start": "after_ready", "poststart": "after_ready", "on_ready": "after_ready", "after_start": "after_ready", "execstartpost": "after_ready",
	"post_stop": "after_stop", "poststop": "after_stop", "on_stop": "after_stop", "on_exit": "after_stop", "cleanup": "after_stop", "execstoppost": "after_stop",
	"pre_stop": "stop, or after_stop",
	"retry":    "retries", "bind": "host", "address": "host", "hostname": "host",
	"image": "", "build": "", "container_name": "", "volumes": "", "networks": "",
}

var readyWords = map[string]string{
	"test": "exec", "command": "exec", "cmd": "exec", "http_get": "http", "httpget": "http", "path": "http", "url": "http", "endpoint": "http", "get": "http",
	"port": "tcp", "socket": "tcp", "line": "log", "pattern": "log", "regex": "log", "output": "log", "logs": "log",
	"start_period": "timeout", "deadline": "timeout", "retries": "timeout", "failure_threshold": "timeout",
	"status_code": "status", "code": "status", "match": "body", "contains": "body", "jsonpath": "json", "json_path": "json",
	"header": "headers", "http_headers": "headers", "httpheaders": "headers", "authorization": "api_key", "auth": "api_key", "token": "api_key", "bearer": "api_key", "key": "api_key",
	"period": "interval", "period_seconds": "interval", "every": "interval", "chat": "completion", "complete": "completion",
}

var hookWords = map[string]string{
	"cmd": "command", "run": "command", "exec": "command", "script": "command", "args": "command", "deadline": "timeout", "time": "timeout", "timeout_seconds": "timeout",
}

var windowWords = map[string]string{
	"name": "window", "title": "window", "window_name": "window", "layout": "split", "tasks": "panes", "commands": "panes", "servers": "panes", "focused": "focus", "active": "focus",
}

var stopWords = map[string]string{
	"timeout": "grace", "grace_period": "grace", "wait": "grace", "timeout_seconds": "grace", "kill_after": "grace",
	"stop_signal": "signal", "sig": "signal", "keep": "spare", "ignore": "spare",
}

var restartWords = map[string]string{
	"never": "no", "false": "no", "none": "no", "unless-stopped": "always", "true": "always", "yes": "always",
	"on_failure": "on-failure", "onfailure": "on-failure", "exit_on_failure": "on-failure", "failure": "on-failure",
	"max_retries": "max", "max_attempts": "max", "max_restarts": "max", "retries": "max", "attempts": "max",
	"delay": "backoff", "backoff_seconds": "backoff", "wait": "backoff", "condition": "policy", "when": "policy",
}

var conditionWords = map[string]string{
	"service_started": "started", "service_healthy": "ready", "service_completed_successfully": "completed",
	"process_started": "started", "process_healthy": "ready", "process_completed_successfully": "completed",
	"process_completed": "completed", "healthy": "ready", "up": "started", "running": "started", "done": "completed",
	"success": "completed", "exited": "completed", "finished": "completed",
}

// What others call the resources of a host.
var needsWords = map[string]string{
	"gpu": "gpu_memory", "vram": "gpu_memory", "gpu_mem": "gpu_memory", "gpumemory": "gpu_memory", "ram": "memory", "mem": "memory",
	"storage": "disk", "space": "disk", "disk_space": "disk", "programs": "commands", "binaries": "commands", "tools": "commands", "command": "commands",
}

// engineWords are other names of engines: of their projects, programs and packages.
var engineWords = map[string]string{
	"llama.cpp": "llama-server", "llama-cpp": "llama-server", "llama_cpp": "llama-server", "llamacpp": "llama-server", "llama": "llama-server",
	"text-embeddings-inference": "tei", "text-embeddings-router": "tei",
	"text-generation-inference": "tgi", "text-generation-launcher": "tgi",
	"whisper": "whisper-server", "whisper.cpp": "whisper-server", "whisper-cpp": "whisper-server",
	"mlx": "mlx-lm", "mlx_lm": "mlx-lm", "mlx_lm.server": "mlx-lm",
	"huggingface": "hf", "huggingface-cli": "hf", "huggingface_hub": "hf", "hf-cli": "hf", "hf_hub": "hf",
	"comfy": "comfyui", "kobold": "koboldcpp", "kobold.cpp": "koboldcpp", "tabby": "tabbyapi", "exllama": "tabbyapi", "exllamav2": "tabbyapi", "exllamav3": "tabbyapi",
	"infinity_emb": "infinity", "infinity-emb": "infinity", "turbomind": "lmdeploy",
}

// noSuch explains what hob does not have at all.
var noSuch = map[string]string{
	"image": "hob runs programs, not images: command: [docker, run, …] with ready: {listener: any}",
	"build": "hob runs programs: build it in a job", "container_name": "the task's own name is its name",
	"volumes": "programs see the host's files: leave it out", "networks": "programs see the host's network: leave it out",
	"version": "hob's recipes have no version: leave it out",
}

// hintKey is the nearest right word for a key that r does not have.
func (r *rule) hintKey(name string) string {
	low := strings.ToLower(name)
	if s := noSuch[low]; s != "" {
		return s
	}
	if s := r.foreign[low]; s != "" && (r.key(s) != nil || !taskName().MatchString(s)) {
		if strings.HasPrefix(s, "command: ") {
			return "write " + s
		}
		return fmt.Sprintf("hob calls it %s", s)
	}
	var names []string
	for _, k := range r.keys {
		names = append(names, k.name)
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if _, err := strconv.Atoi(name); err == nil {
		return "within braces a comma begins a new key: write a list in brackets, or quotes"
	}
	if other := r.kindWith(name); other != "" {
		return "only " + other + "s have it"
	}
	if under := r.under(name); under != "" {
		return fmt.Sprintf("it belongs under %q", under)
	}
	there := "there are: " + strings.Join(names, ", ")
	if option := strings.TrimLeft(name, "-"); r.key("args") != nil && optionName().MatchString(option) {
		return fmt.Sprintf("an option of the program goes into args: [--%s, …]; %s", strings.ReplaceAll(option, "_", "-"), there)
	}
	return there
}

// optionName is what a program may call an option.
var optionName = lazy(`^[a-z][a-z0-9]*([_.-][a-z0-9]+)*$`)

// kindWith is the kind of task that has the key which r, of another kind, lacks.
func (r *rule) kindWith(name string) string {
	if !slices.Contains([]*rule{serverRule, jobRule, shellRule}, r) {
		return ""
	}
	for _, kind := range []*rule{serversRule, jobsRule} {
		if kind.each.key(name) != nil {
			return kind.task
		}
	}
	return ""
}

// under is the key of r below which the name would be right.
func (r *rule) under(name string) string {
	for _, k := range r.keys {
		if k.rule.key(name) != nil {
			return k.name
		}
		if k.rule.each != nil && k.rule.each.key(name) != nil {
			return k.name + ": {NAME: …}"
		}
	}
	return ""
}

// hintWord is the nearest right word for a text that is none of r's.
func (r *rule) hintWord(s string) string {
	if w := r.foreign[s]; w != "" {
		return fmt.Sprintf("hob calls it %s", w)
	}
	if w := r.foreign[strings.ToLower(s)]; w != "" {
		return fmt.Sprintf("hob calls it %s", w)
	}
	if near := nearest(s, r.words); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if len(r.words) > 3 {
		return "there are: " + strings.Join(r.words, ", ")
	}
	return ""
}

// hintForm says how a value of the wrong form is written.
func (r *rule) hintForm(n *node) string {
	switch {
	case len(r.words) > 0 && n.form&scalars != 0:
		return r.hintWord(n.raw)
	case n.secret:
		return r.hintSecret(n)
	case n.form == sequence:
		return r.hintList()
	case n.form == mapping:
		return r.hintMapping(n)
	case n.form == null:
		return ""
	case r.forms&scalars == 0:
		return r.hintBare(n)
	}
	return r.hintScalar(n)
}

// hintSecret says how a value is written that is not to be shown.
func (r *rule) hintSecret(n *node) string {
	if r == envRule && n.form == sequence {
		return "write NAME: value, one a line"
	}
	return ""
}

// hintList is for a list where none may be.
func (r *rule) hintList() string {
	switch {
	case r.task != "":
		return fmt.Sprintf("each has its name for a key: %ss: {NAME: {…}}", r.task)
	case r.key("command") != nil:
		return "say what it is: {command: […]}"
	case r == needsRule:
		return "say what it is: {commands: […]}"
	}
	return ""
}

// hintMapping is for a mapping where none may be.
func (r *rule) hintMapping(n *node) string {
	if r == layoutRule {
		return "begin each window with a dash: - {window: …, panes: […]}"
	}
	if r == taskRef && len(n.pairs) == 1 && n.pairs[0].value.form&scalars != 0 {
		return fmt.Sprintf("with a condition, write a mapping: {%s: %s}", flowWord(cut(n.pairs[0].key.raw)), flowWord(cut(n.pairs[0].value.raw)))
	}
	said := n.get("condition").str()
	if r != conditionRule || said == "" {
		return ""
	}
	if w := r.foreign[said]; w != "" {
		said = w
	}
	if !slices.Contains(r.words, said) {
		return ""
	}
	return "write it as one word: " + said
}

// hintBare is for a text or number where only lists and mappings may be.
func (r *rule) hintBare(n *node) string {
	switch {
	case r == readyRule:
		return hintReady(n.raw)
	case r == stopRule:
		return hintStop(n.raw)
	case r.key("command") != nil && r.key("env") != nil && n.form == text:
		return "say what it is: {command: " + flowWord(n.raw) + "}"
	case r == words_:
		return "write it as a list: [" + flowWords(n.raw) + "]"
	case r.forms&sequence != 0:
		return "write it as a list: [" + n.raw + "]"
	}
	return ""
}

// hintScalar is for a text, number or truth where another of them must be.
func (r *rule) hintScalar(n *node) string {
	switch {
	case r.forms&boolean != 0 && n.form == text:
		return map[string]string{"yes": "write true", "on": "write true", "no": "write false", "off": "write false"}[strings.ToLower(n.raw)]
	case r == duration && n.form == integer:
		return fmt.Sprintf("write a unit: %ss", n.raw)
	case r == size && n.form == integer:
		return fmt.Sprintf("write a unit: %sGiB", n.raw)
	case r.forms == integer && n.form == text && r.check(n.raw) == nil:
		return "write it without quotes"
	case r.forms&scalars == text && n.form&(integer|float|boolean) != 0 && len(r.words) == 0 && (r.check == nil || r.check(n.raw) == nil):
		return fmt.Sprintf("if it is meant as text, put it in quotes: %q", n.raw)
	}
	return ""
}

// hintText is for a text that its check refused.
func (r *rule) hintText(s string) string {
	switch r {
	case portRule:
		return hintPort(s)
	case duration:
		return hintDuration(s)
	case gpusRule, gpusRule.item:
		if m := gpuNamed().FindStringSubmatch(s); m != nil {
			return "write " + m[1]
		}
	case httpPath:
		return hintPath(s)
	}
	return ""
}

// gpuNamed is a GPU as frameworks call it.
var gpuNamed = lazy(`^(?i:cuda|gpu|device)[: =]?([0-9]{1,3})$`)

// hintDuration is a duration in the words of people.
func hintDuration(s string) string {
	m := inWords().FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return ""
	}
	return "write " + m[1] + m[2][:1]
}

var inWords = lazy(`^([0-9]+) ?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)$`)

func hintPath(s string) string {
	if path := urlPath(s); path != "" {
		return "write the path alone: " + path
	}
	if !strings.ContainsAny(s, " \t\r\n:") && s != "" {
		return "write /" + s
	}
	return ""
}

// hintPort is for a port that is mapped to another, as containers' are.
func hintPort(s string) string {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && s[i+1:] != "auto" && validPort(s[i+1:]) == nil {
		return "a program listens on the host itself: write " + s[i+1:]
	}
	return ""
}

// hintBareName is for a value that is a shell's way to name a variable.
func hintBareName(n *node) string {
	name, ok := strings.CutPrefix(n.raw, "$")
	if !ok || n.secret || n.literal || !varsName().MatchString(name) {
		return ""
	}
	return "write ${" + name + "}"
}

// hintRefs is for what should be the name of one task.
func (l *loader) hintRefs(n *node) string {
	if n.filled() {
		return taskNameSays
	}
	if slices.Contains(l.names, slug(n.text)) {
		return "write " + slug(n.text)
	}
	several := strings.FieldsFunc(n.text, func(r rune) bool { return r == ' ' || r == ',' })
	for _, name := range several {
		if !slices.Contains(l.names, name) {
			return taskNameSays
		}
	}
	return "put a comma between them: " + strings.Join(several, ", ")
}

// urlPath is the path of an address of a server; "" if it is none.
func urlPath(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return cmp.Or(u.RequestURI(), "/")
}

// hintReady is the mapping that was probably meant.
func hintReady(s string) string {
	switch path := cmp.Or(urlPath(s), s); strings.ToLower(s) {
	case "tcp", "completion":
		return fmt.Sprintf("write {%s: true}", strings.ToLower(s))
	case "http", "https":
		return "write {http: /health}, or where it answers"
	default:
		if validPath(path) == nil {
			return "write {http: " + flowWord(path) + "}"
		}
	}
	return ""
}

func hintStop(s string) string {
	name := strings.ToUpper(s)
	if w := signalRule.foreign[name]; w != "" {
		name = w
	}
	switch {
	case slices.Contains(signalRule.words, name):
		return "write {signal: " + name + "}"
	case validDuration(s) == nil && s != "0":
		return "write {grace: " + s + "}"
	case validCount(s) == nil:
		return "write {grace: " + s + "s}"
	}
	return ""
}

// hintName says what names are, and what this one could be.
func hintName(namesAre, name string) string {
	foreign := strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
	if s := slug(name); namesAre == taskNameSays && s != "" && !foreign {
		return fmt.Sprintf("write %s: %s", s, namesAre)
	}
	return namesAre
}

// bareReference is a text with variables and without quotes.
var bareReference = lazy(`[^][{}\s,"']*\$\{[^}\s]*\}[^][{}\s,"']*`)

// hintSyntax is what is usually wrong where the parser says so.
func (s *source) hintSyntax(what string, n, col int) string {
	line := s.line(n)
	before := line[:byteColumn(line, col)]
	switch {
	case strings.HasPrefix(what, "did not find expected ',' or "):
		switch text := bareReference().FindString(inQuotes().ReplaceAllString(line, "")); {
		case text != "" && s.private[n]:
			return `within brackets and braces ${…} needs quotes`
		case text != "":
			return fmt.Sprintf("within brackets and braces it needs quotes: %q", cut(text))
		}
		return "close the bracket; a text with brackets, braces or a comma in it needs quotes"
	case strings.HasPrefix(what, "mapping values are not allowed") && s.deeper(n):
		return "the line stands further right than the one before it: the keys of one mapping begin in one column"
	case strings.HasPrefix(what, "mapping values are not allowed"):
		return `a text with ": " in it needs quotes`
	case what == "did not find expected key" && strings.Contains(before, "'"):
		return "within single quotes a single quote is written twice"
	case what == "did not find expected key":
		return "the keys of one mapping begin in one column"
	case strings.HasSuffix(what, "unexpected end of stream"):
		return "a quote is not closed"
	case strings.Contains(what, "cannot start any token"):
		return "a text that begins with @, ` or % needs quotes"
	case strings.Contains(what, "alphabetic or numeric character"), strings.HasPrefix(what, "unknown anchor"):
		return "a text that begins with * or & needs quotes"
	case strings.HasPrefix(what, "block sequence entries are not allowed"):
		return "a list with dashes begins on the next line; a text that begins with a dash and a space needs quotes"
	case strings.HasPrefix(what, "could not find expected ':'"):
		return "after a key comes a colon and a space"
	}
	return ""
}

// deeper reports whether a line stands further right than the one before it, which
// has a value already.
func (s *source) deeper(n int) bool {
	before := s.line(n - 1)
	said := strings.TrimSpace(before)
	return said != "" && !strings.HasSuffix(said, ":") && indent(s.line(n)) > indent(before)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// flowWords are the words of a text, as they stand in a YAML list.
func flowWords(s string) string {
	all, err := shellquote.Split(s)
	if err != nil || len(all) == 0 {
		all = []string{s}
	}
	for i, w := range all {
		all[i] = flowWord(w)
	}
	return strings.Join(all, ", ")
}

// flowWord is a word as it stands within a YAML list or mapping.
func flowWord(s string) string {
	if plainWord().MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// plainWord needs no quotes.
var plainWord = lazy(`^[A-Za-z0-9_./+=~-]+( [A-Za-z0-9_./+=~-]+)*$`)

// words are the hints of a map and some more.
func words(common map[string]string, more map[string]string) map[string]string {
	all := maps.Clone(common)
	maps.Copy(all, more)
	return all
}

// nearest is the word that was probably meant; "" if none is near enough.
func nearest(s string, among []string) string {
	const longest, most = 60, 1000 // beyond these a hint is not worth its search
	if len(s) > longest || len(among) > most {
		return ""
	}
	best, least := "", 1+max(1, len(s)/3)
	for _, w := range among {
		d := levenshtein.ComputeDistance(strings.ToLower(s), strings.ToLower(w))
		if d < least {
			best, least = w, d
		}
	}
	return best
}
