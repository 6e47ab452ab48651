package pilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// maxBody is the longest request that is read.
const maxBody = 1 << 20

// routes are the paths that the server answers.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	get := map[string]http.HandlerFunc{}
	for _, path := range s.Routes {
		get[path] = s.health
	}
	get["/health"], get["/health_generate"], get["/v1/models"] = s.health, s.healthGenerate, s.models
	for path, handle := range get {
		mux.HandleFunc("GET "+path, handle)
	}
	mux.HandleFunc("POST /v1/completions", completions(s, parseText, textShape{}))
	mux.HandleFunc("POST /v1/chat/completions", completions(s, parseChat, chatShape{}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &apiError{http.StatusNotFound, "invalid_request_error", "", "no route " + r.Method + " " + r.URL.Path})
	})
	return s.guarded(mux)
}

// guarded asks for the key, where there is one, as the engines do: below /v1.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.key != "" && strings.HasPrefix(r.URL.Path, "/v1/") && r.Header.Get("Authorization") != "Bearer "+s.key {
			refuse(w, &apiError{http.StatusUnauthorized, "authentication_error", "", "the key is missing or wrong"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// apiError is an error as the OpenAI API tells it.
type apiError struct {
	status  int
	kind    string
	param   string
	message string
}

func (e *apiError) Error() string { return e.message }

func (e *apiError) body() map[string]any {
	var param any
	if e.param != "" {
		param = e.param
	}
	return map[string]any{"error": map[string]any{
		"message": e.message, "type": e.kind, "param": param, "code": e.status,
	}}
}

func invalid(param, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, "invalid_request_error", param, fmt.Sprintf(format, args...)}
}

var errLoading = &apiError{http.StatusServiceUnavailable, "unavailable_error", "", "the model is still loading"}

func refuse(w http.ResponseWriter, err error) {
	var api *apiError
	if !errors.As(err, &api) {
		api = &apiError{http.StatusInternalServerError, "server_error", "", err.Error()}
	}
	reply(w, api.status, api.body())
}

// reply sends body; a client that has gone away misses nothing.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// pause takes the time that an answer takes, and reports whether the client is still there.
func (s *server) pause(ctx context.Context) bool {
	select {
	case <-time.After(s.AnswerTime):
		return true
	case <-ctx.Done():
		return false
	}
}

// loaded answers with errLoading while the model loads.
func (s *server) loaded() (*engine, error) {
	if e := s.engine.Load(); e != nil {
		return e, nil
	}
	return nil, errLoading
}

// health answers /health and the paths that other engines have for it. The body
// has what their clients look for.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	if !s.pause(r.Context()) {
		return
	}
	models := []any{}
	if _, err := s.loaded(); err == nil {
		models = append(models, map[string]any{"name": s.Model, "model": s.Model})
	} else if !s.EarlyHealth {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"status": "ok", "version": "pilot", "models": models})
}

// healthGenerate is healthy when a token really comes.
func (s *server) healthGenerate(w http.ResponseWriter, r *http.Request) {
	e, err := s.loaded()
	if err == nil {
		_, err = e.generate(r.Context(), tokenize("Hello"), 1, func(string) {})
	}
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, map[string]any{"status": "ok"})
}

func (s *server) models(w http.ResponseWriter, r *http.Request) {
	if _, err := s.loaded(); err != nil && !s.EarlyHealth {
		refuse(w, err)
		return
	}
	if !s.pause(r.Context()) {
		return
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{
		"id": s.Model, "object": "model", "owned_by": "hob", "max_model_len": s.Context,
	}}})
}

// completions answers one of the two completion routes.
func completions(s *server, parse func(*http.Request) (*request, error), as answerShape) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e, err := s.loaded()
		if err != nil {
			refuse(w, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		ask, err := parse(r)
		if err == nil {
			err = s.check(ask)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		logf("%s: %d tokens, at most %d more", r.URL.Path, len(ask.prompt), ask.limit)
		if s.BlockCompletions {
			<-r.Context().Done()
			return
		}
		if !s.pause(r.Context()) {
			return
		}
		a := &answer{request: ask, as: as, id: s.answers.Add(1), created: time.Now().Unix(), model: s.Model}
		if ask.Stream {
			a.stream(r.Context(), w, e)
			return
		}
		a.whole(r.Context(), w, e)
	}
}

// check refuses what this server cannot serve.
func (s *server) check(ask *request) error {
	if ask.Model != "" && ask.Model != s.Model {
		return &apiError{http.StatusNotFound, "not_found_error", "model", fmt.Sprintf("the model %q does not exist here; there is %q", ask.Model, s.Model)}
	}
	if len(ask.prompt) >= s.Context {
		return invalid("messages", "the context is %d tokens long, and the prompt has %d", s.Context, len(ask.prompt))
	}
	ask.limit = min(ask.limit, s.Context-len(ask.prompt))
	return nil
}

// event sends one server-sent event.
func event(w http.ResponseWriter, data string) {
	_, _ = w.Write([]byte("data: " + strings.TrimSpace(data) + "\n\n")) // a client that is gone cancels the request's context
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
