package tasks

import (
	"errors"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	ns := Names{
		Runs:  []string{"chat", "chat-prod", "llm"},
		Tasks: map[string][]string{"chat": {"fetch", "llm"}, "chat-prod": {"web"}, "llm": {"web", "db"}},
	}
	tests := []struct{ arg, want, fails, tip string }{
		{"chat", "chat", "", ""},
		{"chat-prod", "chat-prod", "", ""},
		{"chat/llm", "chat/llm", "", ""},
		{"fetch", "chat/fetch", "", ""},
		{"llm", "llm", "", ""}, // a run wins over the task chat/llm
		{"db", "llm/db", "", ""},
		{"web", "", `several runs have a task "web": "chat-prod/web" and "llm/web"`, "say which"},
		{"cha", "", `there is no run or task "cha"`, "did you mean chat or chat-prod or chat-prod/web?"},
		{"chat/lm", "", `there is no task of chat "lm"`, "did you mean llm?"},
		{"chta/llm", "", `there is no run "chta"`, "hob ps lists them"},
		{"nothing-like-it", "", `there is no run or task "nothing-like-it"`, "hob ps lists them"},
		{"../x", "", `"../x" is not the name of a run or task`, "names are"},
		{"chat/../llm", "", `"chat/../llm" is not the name of a run or task`, "names are"},
		{"", "", `"" is not the name of a run or task`, "names are"},
		{"CHAT", "", `"CHAT" is not the name of a run or task`, "names are"},
		{"chat/", "", `"chat/" is not the name of a run or task`, "names are"},
	}
	for _, tt := range tests {
		t.Run(tt.arg, func(t *testing.T) {
			got, err := ns.Resolve(tt.arg)
			if tt.fails == "" {
				if err != nil || got.String() != tt.want {
					t.Fatalf("got %s, %v; want %s", got, err, tt.want)
				}
				return
			}
			var p *Problem
			if !errors.As(err, &p) || !errors.Is(err, ErrUsage) {
				t.Fatalf("got %v (%T), want a wrong usage", err, err)
			}
			if p.Error() != tt.fails || !strings.HasPrefix(p.Hint(), tt.tip) {
				t.Errorf("got %q, hint %q; want %q, hint %q", p.Error(), p.Hint(), tt.fails, tt.tip)
			}
		})
	}
}
