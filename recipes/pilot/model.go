package pilot

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"unicode"
)

// corpus is what the model is trained on, a passage a line: prose, or a
// question and its answer with a tab between them.
//
//go:embed corpus.txt
var corpus string

// The tokens that are no words.
const (
	endOfText = "</s>"
	answering = "<answer>" // between what was asked and what is answered
)

// table is the model: the token that most often followed a context. The context
// is the last three words, or fewer where those were never seen.
type table map[string]string

// learn is the table of the text in file, or of our own without one.
func learn(file string) (table, error) {
	if file == "" {
		return train(corpus), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load the model: %w", err)
	}
	return train(string(text)), nil
}

// counts is a table while it is learned.
type counts map[string]map[string]int

// train learns the table from text. Of two followers that are equally frequent
// the earlier one stays, so the same text always gives the same table.
func train(text string) table {
	seen, best := counts{}, table{}
	for line := range strings.Lines(text) {
		before, tokens := passage(line)
		for _, token := range tokens {
			for _, key := range before.keys() {
				seen.add(best, key, token)
			}
			before = before.push(token)
		}
	}
	return best
}

// add counts token as a follower of key and keeps best up to date.
func (c counts) add(best table, key, token string) {
	if c[key] == nil {
		c[key] = map[string]int{}
	}
	c[key][token]++
	if c[key][token] > c[key][best[key]] {
		best[key] = token
	}
}

// passage is one line of the corpus: the tokens to learn, and what stands before
// the first of them. A question is not learned, or answers would run into it.
func passage(line string) (before tail, tokens []string) {
	text, answer, asked := strings.Cut(strings.TrimSpace(line), "\t")
	if asked {
		before, text = tailOf(append(tokenize(text), answering)), answer
	}
	return before, append(tokenize(text), endOfText)
}

// tokenize splits text into tokens: words with their punctuation.
func tokenize(text string) []string { return strings.Fields(text) }

// tail is the tokens before the next one, in the form in which they are looked up.
type tail [3]string

// tailOf is the tail at the end of a prompt.
func tailOf(prompt []string) (t tail) {
	for _, token := range prompt[max(0, len(prompt)-len(t)):] {
		t = t.push(token)
	}
	return t
}

func (t tail) push(token string) tail { return tail{t[1], t[2], lookupForm(token)} }

// keys are the contexts to look up, the most telling first.
func (t tail) keys() []string {
	return []string{strings.Join(t[:], " "), strings.Join(t[1:], " "), t[2], ""}
}

// lookupForm makes "Recipe?" and "recipe" one word.
func lookupForm(token string) string {
	if token == answering || token == endOfText {
		return token
	}
	return strings.ToLower(strings.TrimFunc(token, unicode.IsPunct))
}

// share is the part of the table that worker rank of n holds, as tensor
// parallel workers each hold a part of the weights.
func (t table) share(rank, n int) table {
	part := table{}
	for key, token := range t {
		if holder(key, n) == rank {
			part[key] = token
		}
	}
	return part
}

// holder is the rank of the worker that holds key.
func holder(key string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(key))
	return int(h.Sum32() % uint32(n))
}
