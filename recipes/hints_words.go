package recipes

import (
	"maps"
)

// What other tools call what hob has another word for, by the mapping that it stands
// in. What is a key of hob's is offered as it is; others are sentences.

// topWords are keys of the recipe.
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

// taskWords are keys of a task.
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

// words are the hints of a map and some more.
func words(common map[string]string, more map[string]string) map[string]string {
	all := maps.Clone(common)
	maps.Copy(all, more)
	return all
}
