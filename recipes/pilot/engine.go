package pilot

import (
	"context"
	"fmt"
)

// A partHolder answers with the token that follows a context, from the part of the
// table that it holds.
type partHolder interface {
	next(ctx context.Context, key string) (token string, ok bool, err error)
}

func (t table) next(_ context.Context, key string) (string, bool, error) {
	token, ok := t[key]
	return token, ok, nil
}

// A generator continues a prompt, token by token.
type generator interface {
	// generate emits at most limit tokens and says why it ended: "stop" or "length".
	generate(ctx context.Context, prompt []string, limit int, emit func(token string)) (reason string, err error)
}

// core continues prompts with the table that its workers hold between them.
type core struct{ parts []partHolder }

func (c core) generate(ctx context.Context, prompt []string, limit int, emit func(string)) (string, error) {
	recent := tailOf(prompt)
	for range limit {
		token, err := c.following(ctx, recent)
		if err != nil {
			return "", err
		}
		if token == endOfText {
			return "stop", nil
		}
		emit(token)
		recent = recent.push(token)
	}
	return "length", nil
}

// following is the token after recent: the longest context that is known decides.
func (c core) following(ctx context.Context, recent tail) (string, error) {
	for _, key := range recent.keys() {
		rank := holder(key, len(c.parts))
		token, ok, err := c.parts[rank].next(ctx, key)
		if err != nil {
			return "", fmt.Errorf("ask worker %d for the next token: %w", rank, err)
		}
		if ok {
			return token, nil
		}
	}
	return endOfText, nil
}
