package probe

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// shortest is how long a part of a header is that may be a secret by itself: who
// would hide a 1 would hide half of what a server says.
const shortest = 4

// schemes are words of an Authorization that tell nothing.
var schemes = []string{"basic", "bearer", "digest", "negotiate", "token"}

// hide keeps what the probe asks with out of a text, should the server have told it:
// whole, in part, as JSON writes it, or as Basic codes it.
func (c Check) hide(text string) string {
	for _, secret := range c.secrets() {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return text
}

// secrets are the texts to hide, longer ones first: a part of one must not leave
// its rest.
func (c Check) secrets() (all []string) {
	add := func(s string) {
		all = append(all, s)
		if quoted, err := json.Marshal(s); err == nil && len(quoted) > len(s)+2 {
			all = append(all, string(quoted[1:len(quoted)-1]))
		}
	}
	if c.Key != "" {
		add(c.Key)
	}
	for _, h := range c.Headers {
		for _, part := range partsOf(h.Value) {
			add(part)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// partsOf are a header's value, and its words where they may be secrets.
func partsOf(value string) []string {
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t,;=", r) })
	for word := range strings.FieldsSeq(value) {
		if plain, err := base64.StdEncoding.DecodeString(word); err == nil {
			user, password, ok := strings.Cut(string(plain), ":")
			if ok {
				words = append(words, string(plain), user, password)
			}
		}
	}
	return slices.DeleteFunc(append(words, value), func(s string) bool {
		return len(s) < shortest || slices.Contains(schemes, strings.ToLower(s))
	})
}
