package pilot

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func complete(t *testing.T, parts []partHolder, prompt []string, limit int) (string, string) {
	t.Helper()
	var words []string
	reason, err := core{parts}.generate(context.Background(), prompt, limit, func(token string) { words = append(words, token) })
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(words, " "), reason
}

func TestModelAnswersWhatItWasTaught(t *testing.T) {
	for line := range strings.Lines(corpus) {
		question, answer, asked := strings.Cut(strings.TrimSpace(line), "\t")
		if !asked {
			continue
		}
		got, reason := complete(t, []partHolder{train(corpus)}, append(tokenize(question), answering), 100)
		if got != answer || reason != "stop" {
			t.Errorf("%s: answered %q (%s), was taught %q", question, got, reason, answer)
		}
	}
}

func TestModelIsTheSameHoweverItIsDivided(t *testing.T) {
	whole := train(corpus)
	for _, prompt := range []string{"The cook leaves", "never seen before", "", "Hello", "a"} {
		want, _ := complete(t, []partHolder{whole}, tokenize(prompt), 50)
		for _, n := range []int{1, 2, 3, 7, 64} {
			var parts []partHolder
			for rank := range n {
				parts = append(parts, whole.share(rank, n))
			}
			if got, _ := complete(t, parts, tokenize(prompt), 50); got != want {
				t.Errorf("%q with %d workers: %q, with one %q", prompt, n, got, want)
			}
		}
	}
}

func TestModelStopsAtTheLimit(t *testing.T) {
	if got, reason := complete(t, []partHolder{train(corpus)}, tokenize("A"), 2); len(tokenize(got)) != 2 || reason != "length" {
		t.Errorf("got %q (%s)", got, reason)
	}
}

func TestTrainKeepsTheMoreFrequentAndThenTheEarlier(t *testing.T) {
	got := train("a b\na c\na c\nx y\nx z\n")
	if got["a"] != "c" || got["x"] != "y" {
		t.Errorf("after a: %q, after x: %q", got["a"], got["x"])
	}
}

func TestStopperHoldsBackWhatMayBeAStop(t *testing.T) {
	for _, c := range []struct {
		stops  []string
		pieces []string
		want   []string
	}{
		{nil, []string{" a", " b"}, []string{" a", " b"}},
		{[]string{" b"}, []string{" a", " b"}, []string{" a"}},
		{[]string{"b c"}, []string{" a", " b", " c", " d"}, []string{" a", " "}},
		{[]string{"b c"}, []string{" a", " b", " d"}, []string{" a", " ", "b d"}},
		{[]string{"c", "b"}, []string{"abc"}, []string{"a"}},
		{[]string{""}, []string{"a"}, []string{"a"}},
		{[]string{"xyz"}, []string{"ax"}, []string{"a", "x"}},
	} {
		var got []string
		s := stopper{stops: c.stops, emit: func(text string) { got = append(got, text) }}
		for _, piece := range c.pieces {
			if s.write(piece); s.stopped {
				break
			}
		}
		s.flush()
		if !slices.Equal(got, c.want) {
			t.Errorf("stops %q, pieces %q: got %q, want %q", c.stops, c.pieces, got, c.want)
		}
	}
}
