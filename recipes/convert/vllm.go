package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A recipe of vllm-project/recipes says how one model is served: arguments that
// it always needs, features (on unless they are listed as opt-in), variants of
// the model, and what each kind of hardware wants besides. The keys are those of
// its CONTRIBUTING.md (https://github.com/vllm-project/recipes). The server is the
// default variant; what can be chosen there is a profile here.

// serving is the server that a recipe describes, before it is written.
type serving struct {
	model string
	args  []string
	env   []pair
	needs int // GB of GPU memory, of all GPUs together; 0 for not said
}

// with is the serving with more laid over it.
func (s serving) with(model string, args []string, env []pair, needs int) serving {
	if model != "" {
		s.model = model
	}
	if needs > 0 {
		s.needs = needs
	}
	s.args, s.env = laid(s.args, args), merged(s.env, env)
	return s
}

// laid adds flags; one that is there already is replaced, as the last one wins.
func laid(args, more []string) []string {
	all := slices.Clone(args)
	for i := 0; i < len(more); {
		n := flagLength(more[i:])
		if at := slices.Index(all, more[i]); at >= 0 && strings.HasPrefix(more[i], "--") {
			all = slices.Delete(all, at, at+flagLength(all[at:]))
		}
		all = append(all, more[i:i+n]...)
		i += n
	}
	return all
}

// flagLength is how many words the flag at the beginning has, with its values.
func flagLength(args []string) int {
	n := 1
	for n < len(args) && !strings.HasPrefix(args[n], "--") {
		n++
	}
	return n
}

func (r *reader) vllmRecipe(top *section, d *draft) {
	meta, model := top.below("meta"), top.below("model")
	r.vllmMeta(meta, d)
	if model == nil {
		return
	}
	base := serving{model: model.text("model_id", "model")}
	if base.model == "" {
		r.wrong(model.v, "model.model_id must say which model")
		return
	}
	base.args = model.texts("base_args", "args")
	base.env = r.goodEnv(model, "base_env")
	if v := model.text("min_vllm_version", "a comment"); v != "" {
		d.head = append(d.head, "It needs vLLM "+oneLine(v)+" or newer.")
	}
	const told = "it says something of the model, or of how to install vLLM"
	model.refuse(told, "docker_image", "nightly_required", "install", "architecture", "parameter_count", "active_parameters", "context_length", "supports_dcp")
	model.end()
	features := r.features(top)
	for _, f := range features {
		if !f.optIn {
			base = base.with("", f.args, f.env, 0)
		}
	}
	if d.name = slug(lastPart(base.model)); d.name == "" {
		d.name = "vllm"
	}
	variants := r.variants(top, base)
	if len(variants) > 0 && variants[0].name == "default" {
		base, variants = variants[0].serving, variants[1:]
	}
	r.strategies(top, &base)
	t := d.add("servers", "vllm")
	base.write(t)
	r.vllmProfiles(top, d, t, base, features, variants)
	top.refuse("it is for people to read", "guide")
	top.refuse("commands that install something are run by hand", "dependencies")
}

func lastPart(model string) string { return model[strings.LastIndexByte(model, '/')+1:] }

func (r *reader) vllmMeta(meta *section, d *draft) {
	if meta == nil {
		return
	}
	for _, key := range []string{"title", "description"} {
		if v := meta.text(key, "a comment"); v != "" {
			d.head = append(d.head, oneLine(v))
		}
	}
	meta.refuse("it is about the page, not about serving", "slug", "provider", "date_added", "date_updated", "difficulty", "tasks", "performance_headline", "related_recipes", "hardware")
	meta.end()
}

func (r *reader) goodEnv(s *section, key string) []pair {
	list := s.pairs(key, "env")
	good := list[:0]
	for _, p := range list {
		if envName().MatchString(p.name) {
			good = append(good, p)
		} else {
			r.drop(s.keyLine(key), s.path+key+"."+shortened(p.name), "a variable's name is letters, digits and _")
		}
	}
	return good
}

// write makes a task of it.
func (s serving) write(t *task) {
	t.set("engine", plain("vllm")).set("model", literal(s.model))
	if len(s.args) > 0 {
		t.set("args", argv(s.args))
	}
	if len(s.env) > 0 {
		t.set("env", environment(s.env))
	}
	if s.needs > 0 {
		wide, err := strconv.Atoi(flagOf(s.args, "--tensor-parallel-size", "-tp"))
		if err != nil || wide < 1 {
			wide = 1
		}
		each := (s.needs + wide - 1) / wide
		t.set("needs", flow(mappingOf([]pair{{"gpu_memory", strconv.Itoa(each) + "GB"}})))
	}
}

// feature is something that can be switched on.
type feature struct {
	name, says string
	optIn      bool
	args       []string
	env        []pair
}

func (r *reader) features(top *section) []feature {
	optIn := top.texts("opt_in_features", "profiles")
	s := top.below("features")
	if s == nil {
		return nil
	}
	var all []feature
	for _, p := range s.v.Pairs {
		s.used[p.Key.Text] = true
		f := r.section("features."+shortened(p.Key.Text), p.Value)
		if f == nil {
			continue
		}
		one := feature{name: p.Key.Text, optIn: slices.Contains(optIn, p.Key.Text), says: f.text("description", "a comment")}
		as := "args"
		if one.optIn {
			as = "profile " + slug(one.name)
		}
		one.args, one.env = f.texts("args", as), r.goodEnv(f, "env")
		r.modes(f, &one, as)
		f.refuse("it is about the page, not about serving", "label")
		f.end()
		all = append(all, one)
	}
	return all
}

// modes: of several ways to do it the recommended one, else the first.
func (r *reader) modes(f *section, one *feature, as string) {
	chosen := f.text("default_mode", "which of the modes")
	modes := f.below("modes")
	if modes == nil {
		return
	}
	if modes.v.Get(chosen) == nil && len(modes.v.Pairs) > 0 {
		chosen = modes.v.Pairs[0].Key.Text
	}
	for _, p := range modes.v.Pairs {
		if p.Key.Text != chosen {
			modes.refuse("another mode is the recommended one: "+shortened(chosen), p.Key.Text)
		}
	}
	if m := modes.below(chosen); m != nil {
		one.args = m.texts("args", as)
		m.refuse("it is about the page, not about serving", "label", "description", "variants", "hardware")
		m.end()
	}
}

// variant is another form of the model.
type variant struct {
	serving
	name, says string
}

func (r *reader) variants(top *section, base serving) []variant {
	s := top.below("variants")
	if s == nil {
		return nil
	}
	var all []variant
	for _, p := range s.v.Pairs {
		s.used[p.Key.Text] = true
		v := r.section("variants."+shortened(p.Key.Text), p.Value)
		if v == nil {
			continue
		}
		one := variant{name: p.Key.Text, says: v.text("description", "a comment")}
		id := v.text("model_id", "model")
		if strings.Contains(id, "*") {
			r.drop(v.keyLine("model_id"), v.path+"model_id", "it is a pattern, not a name")
			id = ""
		}
		needs := r.vram(v)
		one.serving = base.with(id, v.texts("extra_args", "args"), r.goodEnv(v, "extra_env"), needs)
		if n, ok := v.number("tp", "args: --tensor-parallel-size"); ok && n > 1 {
			one.serving = one.serving.with("", []string{"--tensor-parallel-size", strconv.Itoa(n)}, nil, 0)
		}
		v.refuse("it is about the page, or about installing vLLM", "precision", "label", "min_vllm_version", "nightly_required", "supported_hardware")
		v.refuse("a choice of modes, images or hardware is not carried into profiles", "default_modes", "docker_image", "install", "hardware_overrides")
		v.end()
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b variant) int { return rank(a.name) - rank(b.name) })
	return all
}

// rank puts the default first.
func rank(name string) int {
	if name == "default" {
		return 0
	}
	return 1
}

// biggestGPU is what one GPU may have at most, in GB: beyond that the memory is
// that of several, and how many is the reader's choice.
const biggestGPU = 192

func (r *reader) vram(v *section) int {
	n, ok := v.number("vram_minimum_gb", "")
	if !ok || n <= 0 {
		return 0
	}
	line := v.v.Get("vram_minimum_gb").Line
	if n > biggestGPU {
		r.drop(line, v.path+"vram_minimum_gb", fmt.Sprintf("%d GB are more than one GPU has: choose gpus, --tensor-parallel-size and needs", n))
		return 0
	}
	r.keep(line, v.path+"vram_minimum_gb", "needs: gpu_memory")
	return n
}

// strategies: of ways to spread a model, how wide one machine is.
func (r *reader) strategies(top *section, base *serving) {
	top.refuse("hob runs on one machine; say --tensor-parallel-size and gpus", "compatible_strategies")
	s := top.below("strategy_overrides")
	if s == nil {
		return
	}
	defer s.end()
	one := s.below("single_node_tp")
	if one == nil {
		return
	}
	defer one.end()
	if n, ok := one.number("tp", "args: --tensor-parallel-size"); ok && n > 1 {
		*base = base.with("", []string{"--tensor-parallel-size", strconv.Itoa(n)}, nil, 0)
	}
}

func (r *reader) vllmProfiles(top *section, d *draft, t *task, base serving, features []feature, variants []variant) {
	taken := map[string]bool{}
	add := func(name, says string, s serving) {
		for wanted, n := slug(name), 2; ; n++ {
			if name = wanted; n > 2 {
				name = fmt.Sprintf("%s-%d", wanted, n-1)
			}
			if name == "" {
				name = "profile"
			}
			if !taken[name] {
				break
			}
		}
		taken[name] = true
		p := &task{section: t.section, name: t.name}
		s.write(p)
		p.fields = slices.DeleteFunc(p.fields, func(f field) bool { return f.key == "engine" })
		d.profiles = append(d.profiles, profile{name, oneLine(says), p})
	}
	for _, v := range variants {
		add(v.name, v.says, v.serving)
	}
	for _, f := range features {
		if f.optIn {
			add(f.name, f.says, base.with("", f.args, f.env, 0))
		}
	}
	r.hardware(top, base, add)
	if len(d.profiles) > 0 {
		d.head = append(d.head, "A profile (hob up --profile NAME) takes the place of the server's args: two of them do not add up.")
	}
}

// hardware is what some GPUs want besides.
func (r *reader) hardware(top *section, base serving, add func(name, says string, s serving)) {
	s := top.below("hardware_overrides")
	if s == nil {
		return
	}
	for _, p := range s.v.Pairs {
		s.used[p.Key.Text] = true
		h := r.section("hardware_overrides."+shortened(p.Key.Text), p.Value)
		if h == nil {
			continue
		}
		args, env := h.texts("extra_args", "profile "+slug(p.Key.Text)), r.goodEnv(h, "extra_env")
		h.end()
		if len(args)+len(env) > 0 {
			add(p.Key.Text, "For "+shortened(p.Key.Text)+".", base.with("", args, env, 0))
		}
	}
}
