package convert

import (
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
	"gopkg.in/yaml.v3"
)

// simple takes a command apart that no shell is needed for: no operators, no
// expansions, no words of the shell's own. Variables that are set in front of it
// are returned as such.
func simple(text string) (env []pair, argv []string, ok bool) {
	if !bare(text) {
		return nil, nil, false
	}
	list, err := shellquote.Split(text)
	if err != nil {
		return nil, nil, false
	}
	for len(list) > 0 {
		name, value, set := strings.Cut(list[0], "=")
		if !set || !envName().MatchString(name) {
			break
		}
		env, list = append(env, pair{name, value}), list[1:]
	}
	if len(list) > 1 && list[0] == "exec" && !strings.HasPrefix(list[1], "-") {
		list = list[1:]
	}
	if len(list) == 0 || isBuiltin(list[0]) {
		return nil, nil, false
	}
	return env, list, true
}

var envName = lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// bare reports whether a text has nothing outside of quotes, or within double
// ones, that a shell would do more with than take words apart.
func bare(text string) bool {
	quote := byte(0)
	start := true // of a word
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			}
		case c == '$' || c == '`':
			return false
		case c == '\\':
			if i++; i == len(text) || text[i] == '\n' {
				return false
			}
		case quote == '"':
			if c == '"' {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte("|&;<>()*?[]{}!\n", c) >= 0, start && (c == '#' || c == '~'):
			return false
		}
		start = c == ' ' || c == '\t' || c == '='
	}
	return quote == 0 && strings.TrimSpace(text) != ""
}

func isBuiltin(word string) bool {
	switch word {
	case ".", ":", "[", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare", "eval", "exec", "exit", "export",
		"fg", "for", "function", "if", "jobs", "local", "popd", "pushd", "read", "return", "select", "set", "shift", "shopt", "source", "time",
		"trap", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
		// functions that people's shells have, not programs
		"conda", "mamba", "micromamba", "nvm", "rvm", "sdk", "workon", "deactivate":
		return true
	}
	return false
}

// known is a command that starts a model server which hob has an engine for.
type known struct {
	engine string
	port   int    // 0: not said, and so the engine's
	bound  bool   // the port is ref("port")
	host   string // where it listens, if that is said and is an address to ask at
}

// starters are the beginnings of commands, and whose they are. A command's first
// word is compared without its folder.
var starters = []struct {
	words  []string
	engine string
}{
	{[]string{"vllm", "serve"}, "vllm"}, {[]string{"-m", "vllm.entrypoints.openai.api_server"}, "vllm"}, {[]string{"-m", "vllm.entrypoints.cli.main", "serve"}, "vllm"},
	{[]string{"sglang", "serve"}, "sglang"}, {[]string{"-m", "sglang.launch_server"}, "sglang"},
	{[]string{"llama-server"}, "llama-server"}, {[]string{"ollama", "serve"}, "ollama"},
	{[]string{"lmdeploy", "serve", "api_server"}, "lmdeploy"}, {[]string{"text-generation-launcher"}, "tgi"}, {[]string{"text-embeddings-router"}, "tei"},
	{[]string{"infinity_emb", "v2"}, "infinity"}, {[]string{"mlx_lm.server"}, "mlx-lm"}, {[]string{"mlx_lm", "server"}, "mlx-lm"}, {[]string{"-m", "mlx_lm.server"}, "mlx-lm"},
	{[]string{"koboldcpp"}, "koboldcpp"}, {[]string{"koboldcpp.py"}, "koboldcpp"}, {[]string{"whisper-server"}, "whisper-server"},
}

// recognise tells a model server by its command; nil for anything else.
func recognise(env []pair, args []string) *known {
	engine := engineOf(args)
	if engine == "" {
		return nil
	}
	k := &known{engine: engine}
	flags := []string{"--port", "--server-port"}
	if engine == "tei" || engine == "tgi" { // elsewhere it is a prompt
		flags = append(flags, "-p")
	}
	k.listen(flagOf(args, flags...), flagOf(args, "--host", "--server-name", "--hostname"))
	if engine == "ollama" {
		for _, p := range env {
			if p.name == "OLLAMA_HOST" {
				k.address(p.value)
			}
		}
	}
	return k
}

func engineOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	args = append([]string{base(args[0])}, args[1:]...)
	if isPython(args[0]) && len(args) > 1 {
		if args[1] != "-m" { // a script: the program is what it runs
			args = append([]string{base(args[1])}, args[2:]...)
		} else {
			args = args[1:]
		}
	}
	for _, s := range starters {
		if len(args) >= len(s.words) && strings.Join(args[:len(s.words)], " ") == strings.Join(s.words, " ") {
			return s.engine
		}
	}
	return ""
}

func isPython(program string) bool {
	return program == "python" || strings.HasPrefix(program, "python3") || program == "uv" || program == "pypy3"
}

// flagOf is the value of the first of the flags that is there.
func flagOf(args []string, flags ...string) string {
	for i, a := range args {
		for _, f := range flags {
			if a == f && i+1 < len(args) {
				return args[i+1]
			}
			if v, ok := strings.CutPrefix(a, f+"="); ok {
				return v
			}
		}
	}
	return ""
}

func (k *known) listen(port, host string) {
	if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 65536 {
		k.port = n
	}
	k.bound = port == ref("port")
	if host != "" && !everywhere(host) && !strings.ContainsAny(host, " /\t\n"+string(refOpen)) {
		k.host = host
	}
}

// address is "host:port", as Ollama takes it.
func (k *known) address(s string) {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "http://"), "https://")
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return
	}
	k.listen(s[i+1:], strings.Trim(s[:i], "[]"))
}

// everywhere reports whether a server that listens there is asked at 127.0.0.1.
func everywhere(host string) bool {
	switch host {
	case "0.0.0.0", "::", "[::]", "127.0.0.1", "localhost", "*":
		return true
	}
	return false
}

// serve makes a task that which it was recognised as. The command stays exactly
// as it was: the engine gives readiness, stop, needs and diagnosis.
func (t *task) serve(k *known) {
	t.set("engine", plain(k.engine))
	switch {
	case k.port > 0:
		t.set("port", number(k.port))
	case k.bound && t.get("port") == nil:
		t.set("port", plain("auto"))
	}
	if k.host != "" {
		t.set("host", literal(k.host))
	}
}

// environ sets variables. CUDA_VISIBLE_DEVICES with numbers is what hob calls gpus.
func (t *task) environ(env []pair) {
	var rest []pair
	for _, p := range env {
		switch {
		case p.name == "CUDA_VISIBLE_DEVICES" && gpuList().MatchString(p.value):
			t.set("gpus", flow(numbers(p.value)))
		case p.value == "" && p.name == "CUDA_VISIBLE_DEVICES":
			t.set("gpus", plain("none"))
		default:
			rest = setPair(rest, p)
		}
	}
	if len(rest) > 0 {
		t.set("env", environment(rest))
	}
}

// setPair adds a variable, in place of an earlier one of that name.
func setPair(list []pair, p pair) []pair {
	for i := range list {
		if list[i].name == p.name {
			list[i].value = p.value
			return list
		}
	}
	return append(list, p)
}

// numbers is "0,1" as a list.
func numbers(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for one := range strings.SplitSeq(s, ",") {
		k, _ := strconv.Atoi(one)
		n.Content = append(n.Content, number(k))
	}
	return n
}

var gpuList = lazy(`^[0-9]{1,3}(,[0-9]{1,3})*$`)
