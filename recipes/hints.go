package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
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
	return "there are: " + strings.Join(names, ", ")
}

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
