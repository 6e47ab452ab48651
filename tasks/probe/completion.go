package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/tidwall/gjson"
)

// completion asks for one real token. /health says 200 in some servers while a
// completion blocks, or before a model is loaded; a token says that it works.
func (a attempt) completion(ctx context.Context) error {
	if a.check.Port == 0 {
		return errors.New("there is no port to ask for a completion")
	}
	model, err := a.model(ctx)
	if err != nil {
		return err
	}
	got, err := a.complete(ctx, "/v1/completions", map[string]any{"model": model, "prompt": "Hi", "max_tokens": 1})
	if err != nil || got.ok() || !unknownRoute(got.status) {
		return firstError(err, a.completed("/v1/completions", got))
	}
	// A server may know chats only.
	chat := []map[string]string{{"role": "user", "content": "Hi"}}
	got, err = a.complete(ctx, "/v1/chat/completions", map[string]any{"model": model, "messages": chat, "max_tokens": 1})
	return firstError(err, a.completed("/v1/chat/completions", got))
}

// unknownRoute reports whether a status may mean that the server completes no
// plain prompts; a refusal (401, 429) or a failure of its own (500, 503) does not.
func unknownRoute(status int) bool {
	return slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusUnprocessableEntity, http.StatusNotImplemented}, status)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a attempt) complete(ctx context.Context, path string, ask map[string]any) (answer, error) {
	body, err := json.Marshal(ask)
	if err != nil {
		return answer{}, err
	}
	return a.ask(ctx, a.route(path), http.MethodPost, string(body))
}

func (a attempt) route(path string) target {
	return target{port: a.check.Port, url: &url.URL{Path: path}}
}

// completed checks that a completion is one: some servers report a failed load
// with status 200.
func (a attempt) completed(path string, got answer) error {
	switch {
	case got.status == http.StatusUnauthorized, got.status == http.StatusForbidden:
		return fmt.Errorf("%s answered %s: %s", path, status(got.status), a.keyless())
	case !got.ok():
		return fmt.Errorf("%s answered %s%s", path, status(got.status), got.quoted())
	case gjson.GetBytes(got.body, "error").Exists() && gjson.GetBytes(got.body, "error").Type != gjson.Null:
		return fmt.Errorf("%s answered with an error%s", path, got.quoted())
	case gjson.GetBytes(got.body, "choices.#").Int() < 1:
		return fmt.Errorf("%s answered without a completion%s", path, got.quoted())
	}
	return nil
}

// keyless says what is wrong with the key. The answer is not shown: it may hold it.
func (a attempt) keyless() string {
	switch {
	case a.check.Key != "":
		return "it does not take the key that hob was given"
	case slices.ContainsFunc(a.check.Headers, func(h Header) bool { return h.Name == "Authorization" }):
		return "it does not take the Authorization that hob was given (ready: {headers: …} in the recipe)"
	}
	return "it asks for a key, and hob has none (ready: {api_key: …} in the recipe)"
}

// model is the name to ask for: the recipe's, or the first that the server lists.
// A server that lists none may still complete for whatever name.
func (a attempt) model(ctx context.Context) (string, error) {
	if a.check.Model != "" {
		return a.check.Model, nil
	}
	got, err := a.ask(ctx, a.route("/v1/models"), http.MethodGet, "")
	if err != nil {
		return "", err
	}
	if id := gjson.GetBytes(got.body, "data.0.id").String(); got.ok() && id != "" {
		return id, nil
	}
	return "default", nil
}
