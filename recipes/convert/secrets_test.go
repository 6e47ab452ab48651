package convert_test

import (
	"strings"
	"testing"

	"hob/recipes/convert"
)

// TestSecretWords: each form in which a command may be told a secret, and what only
// looks like one. The words that are hidden are those that freeze and import move.
func TestSecretWords(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"x", "--cookie", "v"}, []string{"x", "--cookie", "…"}},
		{[]string{"x", "--jwt=v"}, []string{"x", "--jwt=…"}},
		{[]string{"litellm", "--master-key", "v"}, []string{"litellm", "--master-key", "…"}},
		{[]string{"curl", "-H", "X-Token: v", "u"}, []string{"curl", "-H", "…", "u"}},
		{[]string{"curl", "-HX-Api-Key:v", "u"}, []string{"curl", "…", "u"}},
		{[]string{"x", "--header=Authorization:v"}, []string{"x", "--header=…"}},
		{[]string{"x", "--user", "me:pw"}, []string{"x", "--user", "…"}},
		{[]string{"x", "--user=me:pw"}, []string{"x", "--user=…"}},
		{[]string{"/usr/bin/curl", "-u", "me:pw", "u"}, []string{"/usr/bin/curl", "-u", "…", "u"}},
		{[]string{"curl", "-ume:pw"}, []string{"curl", "…"}},
		{[]string{"curl", "-b", "s=1"}, []string{"curl", "-b", "…"}},
		{[]string{"x", "--api-key", "YWJj="}, []string{"x", "--api-key", "…"}},
		{[]string{"curl", "-H", "X-Token:YWJj=", "-u", "me:p=w"}, []string{"curl", "-H", "…", "-u", "…"}},
		{[]string{"HF_TOKEN=v", "x"}, []string{"HF_TOKEN=…", "x"}},
		{[]string{"x", `{"apiKey":"v"}`}, []string{"x", "…"}},
		{[]string{"x", `{"a": 1, "hf_token": "v"}`}, []string{"x", "…"}},
		{[]string{"x", "postgres://me:pw@host/db"}, []string{"x", "…"}},
		{[]string{"x", "--db=redis://:pw@host"}, []string{"x", "--db=…"}},
		{[]string{"sh", "-c", "curl -H 'X-Token: v' u"}, []string{"sh", "-c", "…"}},
		{[]string{"sh", "-c", "curl -u me:pw u"}, []string{"sh", "-c", "…"}},
		{[]string{"sh", "-c", `curl -d '{"api_key":"v"}' u`}, []string{"sh", "-c", "…"}},
		{[]string{"sh", "-c", `curl -d "{\"api_key\":\"v\"}" u`}, []string{"sh", "-c", "…"}},

		{[]string{"docker", "run", "--user", "1000:1000", "i"}, nil},
		{[]string{"curl", "-H", "Accept: text/plain", "http://host:80/x"}, nil},
		{[]string{"x", `{"pad_token_id": 0, "monkey": "v"}`}, nil},
		{[]string{"x", "--tokenizer", "t", "--max-tokens", "5", "--keyframes", "3"}, nil},
		{[]string{"ssh", "git@host:path"}, nil},
	} {
		want := c.want
		if want == nil {
			want = c.args
		}
		if got := convert.Hide(c.args); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q is shown as %q, want %q", c.args, got, want)
		}
	}
}
