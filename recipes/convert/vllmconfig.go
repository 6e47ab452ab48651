package convert

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"hob/recipes"
)

// A configuration file of vllm serve has its long options as keys
// (docs/configuration/serve_args.md of vllm-project/vllm). true is the option
// alone, false is as if it were not there, a list is its values one after the
// other.
func (r *reader) vllmConfig(top *section, d *draft) {
	s := serving{model: top.text("model", "model")}
	if s.model == "" {
		s.model = top.text("model_tag", "model")
	}
	t := d.add("servers", "vllm")
	d.name = slug(baseName(r.file))
	if s.model == "" {
		d.vars = append(d.vars, pair{"model", "ORGANISATION/MODEL"})
		d.head = append(d.head, "The file names no model: write it into vars, or start it with --set model=NAME.")
		s.model = ref("model")
	} else if name := slug(lastPart(s.model)); name != "" {
		d.name = name
	}
	if host := top.text("host", "host"); host != "" {
		if strings.ContainsAny(host, " \t\r\n/") {
			r.wrong(top.v.Get("host"), "host must be a name or an address")
		}
		t.set("host", literal(host))
	}
	if port, ok := top.port("port", "port"); ok {
		t.set("port", number(port))
	}
	top.refuse("a secret in an argument can be read by everybody: put VLLM_API_KEY into an env_file", "api-key", "api_key")
	for _, p := range top.v.Pairs {
		if !top.used[p.Key.Text] {
			top.used[p.Key.Text] = true
			s.args = append(s.args, r.option(p)...)
		}
	}
	s.write(t)
}

var vllmFlagName = lazy(`^[A-Za-z][A-Za-z0-9_.+-]*$`)

// option is one key as arguments.
func (r *reader) option(p recipes.ValuePair) []string {
	name, v := p.Key.Text, p.Value
	if !vllmFlagName().MatchString(name) {
		r.wrong(p.Key, "%q is no option", shortened(name))
		return nil
	}
	flag := "--" + strings.ReplaceAll(name, "_", "-")
	as := "args: " + flag
	switch {
	case v.Form == recipes.FormNull:
		r.keep(v.Line, name, "it is empty")
		return nil
	case v.Form == recipes.FormBool && v.Text == "true":
		r.keep(v.Line, name, as)
		return []string{flag}
	case v.Form == recipes.FormBool:
		r.keep(v.Line, name, "it is off: vLLM takes that for not said")
		return nil
	case v.Scalar():
		r.keep(v.Line, name, as)
		return []string{flag, v.Text}
	case v.Form == recipes.FormMapping:
		r.keep(v.Line, name, as+", as JSON")
		return []string{flag, asJSON(v)}
	}
	args := []string{flag}
	for i, item := range v.Items {
		if !item.Scalar() {
			r.wrong(item, "%s[%d] must be text, not %s", name, i, item.Form)
			continue
		}
		args = append(args, item.Text)
	}
	r.keep(v.Line, name, as)
	return args
}

// asJSON is a value in JSON, with its keys in their order.
func asJSON(v *recipes.Value) string {
	switch v.Form {
	case recipes.FormMapping:
		var all []string
		for _, p := range v.Pairs {
			all = append(all, quoted(p.Key.Text)+": "+asJSON(p.Value))
		}
		return "{" + strings.Join(all, ", ") + "}"
	case recipes.FormList:
		var all []string
		for _, item := range v.Items {
			all = append(all, asJSON(item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case recipes.FormNull:
		return "null"
	case recipes.FormBool:
		return strings.ToLower(v.Text)
	case recipes.FormNumber:
		if f, err := strconv.ParseFloat(v.Text, 64); err == nil && json.Valid([]byte(v.Text)) {
			return v.Text
		} else if err == nil {
			return fmt.Sprint(f)
		}
	}
	return quoted(v.Text)
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(text)
}
