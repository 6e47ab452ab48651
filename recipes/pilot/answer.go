package pilot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// answer is one completion on its way out.
type answer struct {
	*request
	as      answerShape
	id      int64
	created int64
	model   string
}

// answerShape is what the two routes' answers differ in.
type answerShape interface {
	object(stream bool) string
	id(n int64) string
	text(text string) map[string]any              // of a whole answer
	delta(text string, first bool) map[string]any // of a piece of a stream
}

type textShape struct{}

func (textShape) object(bool) string                       { return "text_completion" }
func (textShape) id(n int64) string                        { return fmt.Sprintf("cmpl-%d", n) }
func (textShape) text(text string) map[string]any          { return map[string]any{"text": text} }
func (textShape) delta(text string, _ bool) map[string]any { return map[string]any{"text": text} }

type chatShape struct{}

func (chatShape) object(stream bool) string {
	if stream {
		return "chat.completion.chunk"
	}
	return "chat.completion"
}

func (chatShape) id(n int64) string { return fmt.Sprintf("chatcmpl-%d", n) }

func (chatShape) text(text string) map[string]any {
	return map[string]any{"message": map[string]any{"role": "assistant", "content": strings.TrimPrefix(text, " ")}}
}

func (chatShape) delta(text string, first bool) map[string]any {
	delta := map[string]any{"content": text}
	if first {
		delta = map[string]any{"role": "assistant", "content": strings.TrimPrefix(text, " ")}
	}
	return map[string]any{"delta": delta}
}

// run makes the completion and hands out its text as far as it is certain that
// no stop string begins in it.
func (a *answer) run(ctx context.Context, g generator, emit func(text string)) (reason string, made int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &stopper{stops: a.Stop, emit: emit}
	reason, err = g.generate(ctx, a.prompt, a.limit, func(token string) {
		if out.stopped {
			return
		}
		made++
		if out.write(" " + token); out.stopped {
			cancel()
		}
	})
	if out.stopped {
		return "stop", made, nil
	}
	out.flush()
	return reason, made, err
}

// body is an answer with one choice.
func (a *answer) body(stream bool, choice map[string]any, reason any) map[string]any {
	choice["index"], choice["finish_reason"] = 0, reason
	return map[string]any{
		"id": a.as.id(a.id), "object": a.as.object(stream), "created": a.created, "model": a.model,
		"choices": []any{choice},
	}
}

func (a *answer) usage(made int) map[string]any {
	return map[string]any{"prompt_tokens": len(a.prompt), "completion_tokens": made, "total_tokens": len(a.prompt) + made}
}

// whole answers in one piece.
func (a *answer) whole(ctx context.Context, w http.ResponseWriter, g generator) {
	var text strings.Builder
	reason, made, err := a.run(ctx, g, func(piece string) { text.WriteString(piece) })
	if err != nil {
		refuse(w, err)
		return
	}
	body := a.body(false, a.as.text(text.String()), reason)
	body["usage"] = a.usage(made)
	reply(w, http.StatusOK, body)
}

// stream answers in server-sent events, a piece each.
func (a *answer) stream(ctx context.Context, w http.ResponseWriter, g generator) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	first := true
	reason, made, err := a.run(ctx, g, func(piece string) {
		a.send(w, a.body(true, a.as.delta(piece, first), nil))
		first = false
	})
	if err != nil {
		api := &apiError{http.StatusInternalServerError, "server_error", "", err.Error()}
		a.send(w, api.body())
		return
	}
	a.send(w, a.body(true, a.as.delta("", first), reason))
	if a.StreamOptions.IncludeUsage {
		last := a.body(true, map[string]any{}, nil)
		last["choices"], last["usage"] = []any{}, a.usage(made)
		a.send(w, last)
	}
	event(w, "[DONE]")
}

func (a *answer) send(w http.ResponseWriter, body any) {
	data, _ := json.Marshal(body) // maps of strings and numbers always marshal
	event(w, string(data))
}

// stopper passes text on, but for a stop string and what comes after it.
type stopper struct {
	stops   []string
	emit    func(string)
	held    string // may be the beginning of a stop string
	stopped bool
}

func (s *stopper) write(text string) {
	s.held += text
	if at := s.find(); at >= 0 {
		s.held, s.stopped = s.held[:at], true
		s.flush()
		return
	}
	keep := s.beginning()
	s.pass(s.held[:len(s.held)-keep])
	s.held = s.held[len(s.held)-keep:]
}

// find is where the first stop string begins in what is held; -1 for nowhere.
func (s *stopper) find() int {
	first := -1
	for _, stop := range s.stops {
		if at := strings.Index(s.held, stop); stop != "" && at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// beginning is how long the longest end of what is held is that begins a stop string.
func (s *stopper) beginning() int {
	longest := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > longest; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				longest = n
			}
		}
	}
	return longest
}

func (s *stopper) pass(text string) {
	if text != "" {
		s.emit(text)
	}
}

func (s *stopper) flush() {
	s.pass(s.held)
	s.held = ""
}
