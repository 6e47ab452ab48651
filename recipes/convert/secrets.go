package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-envparse"
	"github.com/kballard/go-shellquote"
)

// Secrets in foreign commands. What looks like one is taken for one: moving a word
// into a file of its own harms nothing, and showing a token does.

// secretValue are tokens by their own look: those of Hugging Face, OpenAI and its
// kin, GitHub, GitLab, AWS and Google, a bearer's, and the password of a URL.
var secretValue = lazy(`(?:^|[^A-Za-z0-9])(?:hf_[A-Za-z0-9]{8,}|api_org_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{12,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|[Bb]earer\s+\S{6,})|://[^/@\s:]*:[^/@\s]+@`)

// secretName reports whether an option or a variable is called after a secret:
// --api-key, HF_TOKEN, and not --max-tokens or --tokenizer.
func secretName(name string) bool {
	name = strings.ToLower(hump().ReplaceAllString(strings.TrimLeft(name, "-"), "$1-$2"))
	parts := strings.FieldsFunc(name, func(c rune) bool { return c == '-' || c == '_' || c == '.' })
	for i, p := range parts {
		switch p {
		case "token", "secret", "secrets", "password", "passwd", "passphrase", "pwd", "credential", "credentials", "apikey", "auth", "authorization", "bearer", "pat", "cookie", "cookies", "jwt":
			return true
		case "key", "keys":
			if i > 0 && slices.Contains([]string{"api", "access", "secret", "private", "admin", "auth", "master", "signing", "encryption"}, parts[i-1]) {
				return true
			}
		}
	}
	return false
}

// hump is where a name in camelCase has its words: apiKey, accessToken.
var hump = lazy(`([a-z])([A-Z])`)

// secretWords says which words of a command are secrets: the value behind an
// option of such a name, or what looks like a token wherever it stands.
func secretWords(args []string) []bool {
	found := make([]bool, len(args))
	curl := false
	for i, a := range args {
		name, value, both := strings.Cut(a, "=")
		option := strings.HasPrefix(a, "-")
		curl = curl || base(a) == "curl"
		switch {
		case secretValue().MatchString(a), secretField(a):
			found[i] = true
		case i > 0 && isUser(args[i-1]) && withPassword(a):
			found[i] = true
		case both && isUser(name) && withPassword(value):
			found[i] = true
		case curl && len(a) > 2 && isUser(a[:2]) && withPassword(a[2:]): // -ume:pw
			found[i] = true
		case curl && i > 0 && args[i-1] == "-b" && !option: // a cookie
			found[i] = true
		case i > 0 && strings.HasSuffix(args[i-1], ":") && secretName(strings.TrimSuffix(args[i-1], ":")): // a header that was taken apart
			found[i] = true
		case both && value != "" && (secretName(name) || secretField(value)):
			found[i] = true
		case option && !both && secretName(name) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			found[i+1] = true
		}
	}
	return found
}

// namedField is the name of an HTTP header in front of its value, or of a member in JSON
// text, also within the quotes of a shell.
var namedField = lazy(`^([A-Za-z0-9_-]+):\s*\S|\\*"([^"\\]+)\\*"\s*:\s*\\*"[^"\\]`)

// secretField reports whether a word holds a field that is called after a secret, as
// curl -H 'X-Auth-Token: …', or --config '{"api_key": "…"}'.
func secretField(word string) bool {
	word = strings.TrimPrefix(word, "-H")
	return slices.ContainsFunc(namedField().FindAllStringSubmatch(word, -1), func(m []string) bool { return secretName(m[1] + m[2]) })
}

// isUser reports whether an option takes a user's name with the password behind a
// colon (curl(1), wget(1)).
func isUser(option string) bool {
	return slices.Contains([]string{"-u", "--user", "-U", "--proxy-user"}, option)
}

// withPassword reports whether a user is named with a password, and not as the ids
// that docker run -u takes.
func withPassword(user string) bool {
	name, password, _ := strings.Cut(user, ":")
	_, err := strconv.Atoi(name + password)
	return password != "" && err != nil
}

// Hide is a command line for people to read: what looks like a secret is left out.
func Hide(args []string) []string {
	out := make([]string, len(args))
	for i, secret := range secretWords(args) {
		name, _, both := strings.Cut(args[i], "=")
		switch {
		case strings.ContainsAny(args[i], " \n\t"): // a shell's text: a whole command in one word
			secret = secret || secretText(args[i])
			both = false
		case !secret:
		default: // a name before the = is shown where it is one: a key may end with a =, too
			behind := i > 0 && strings.HasPrefix(args[i-1], "-")
			both = both && (tells(name) || !behind && envName().MatchString(name) && !secretValue().MatchString(name))
		}
		switch {
		case !secret:
			out[i] = args[i]
		case both:
			out[i] = name + "=…"
		default:
			out[i] = "…"
		}
	}
	return out
}

// secretText reports whether a text that is not taken apart may hold a secret.
func secretText(text string) bool {
	if secretValue().MatchString(text) || secretField(text) {
		return true
	}
	fields := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", c) })
	for _, secret := range secretWords(fields) {
		if secret {
			return true
		}
	}
	return false
}

// secretInText reports whether a word that holds a whole command, or a title, may hold
// a secret: it cannot be moved without knowing what a shell would make of the word.
func secretInText(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.ContainsAny(a, " \n\t") && secretText(a) })
}

// moved is a command whose secrets stand in variables.
type moved struct {
	text string // for a shell; "" where there was no secret
	vars []pair

	prefix string
}

// moveSecrets has a command take its secrets from variables: the shell fills them
// in, so that they stand in no recipe. The variables' names begin with prefix.
func moveSecrets(args []string, prefix string) moved {
	secret := secretWords(args)
	m := moved{prefix: prefix}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = shellquote.Join(a)
		if !secret[i] {
			continue
		}
		option, value, both := strings.Cut(a, "=")
		head := ""
		switch {
		case both && tells(option):
			head = shellquote.Join(option + "=")
		case i > 0 && !secret[i-1] && tells(args[i-1]):
			option, value = args[i-1], a
		default:
			option, value = "secret", a
		}
		name := m.variable(option)
		m.vars = append(m.vars, pair{name, value})
		words[i] = head + `"$` + name + `"`
	}
	if len(m.vars) > 0 {
		m.text = "exec " + strings.Join(words, " ")
	}
	return m
}

// tells reports whether a word is an option's name and nothing else, so that a variable
// may be named after it: --api-key, and not --token=VALUE or -HX-Token:VALUE.
func tells(word string) bool {
	return optionName().MatchString(word) && !secretValue().MatchString(word)
}

var optionName = lazy(`^--?[A-Za-z][A-Za-z0-9_.-]*$`)

// variable is a name for the value of an option, that no other has.
func (m moved) variable(option string) string {
	base := strings.ToUpper(strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, option), "_"))
	name := m.prefix + base
	for n := 2; ; n++ {
		taken := false
		for _, p := range m.vars {
			taken = taken || p.name == name
		}
		if !taken {
			return name
		}
		name = fmt.Sprintf("%s%s_%d", m.prefix, base, n)
	}
}

// envFile is the text of an env_file, and whether it reads back as it was meant.
func envFile(vars []pair) (string, bool) {
	var b strings.Builder
	for _, p := range vars {
		fmt.Fprintf(&b, "%s=\"%s\"\n", p.name, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p.value))
	}
	read, err := envparse.Parse(bytes.NewReader([]byte(b.String())))
	if err != nil || len(read) != len(vars) {
		return "", false
	}
	for _, p := range vars {
		if read[p.name] != p.value {
			return "", false
		}
	}
	return b.String(), true
}
