package probe

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortest is how long a part of a header is that may be a secret by itself, wherever it
// stands: who would hide a 1 or an "on" so would hide half of what a server says. A whole
// value below that is hidden where it is a word of its own, as a server repeats it. One
// of a single character is not: it is no secret, and the counts and the punctuation of
// an answer would go with it.
const shortest = 4

// schemes are words of an Authorization that tell nothing.
var schemes = []string{"basic", "bearer", "digest", "negotiate", "token"}

// hide keeps what the probe asks with out of a text, should the server have told it:
// whole, in part, as JSON writes it, or as Basic codes it.
func (c Check) hide(text string) string {
	for _, secret := range c.secrets() {
		text = strings.ReplaceAll(text, secret, "…")
	}
	for _, h := range c.Headers {
		if n := len(h.Value); n > 1 && n < shortest {
			text = hideWord(text, h.Value)
		}
	}
	return text
}

// hideWord hides a word where no letter and no digit stands beside it.
func hideWord(text, word string) string {
	var b strings.Builder
	within := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for before := ' '; ; {
		at := strings.Index(text, word)
		if at < 0 {
			return b.String() + text
		}
		if at > 0 {
			before, _ = utf8.DecodeLastRuneInString(text[:at])
		}
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		b.WriteString(text[:at])
		if shown := within(before) || within(after); shown {
			b.WriteString(word)
		} else {
			b.WriteString("…")
		}
		before, _ = utf8.DecodeLastRuneInString(word)
		text = text[at+len(word):]
	}
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
