package pilot

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// request is what both completion routes have in common. The answer is always
// the likeliest one: temperature, top_p and seed change nothing and are ignored,
// as is every field that is not named here.
type request struct {
	Model               string     `json:"model"`
	MaxTokens           *int       `json:"max_tokens"`
	MaxCompletionTokens *int       `json:"max_completion_tokens"`
	N                   *int       `json:"n"`
	Stop                stringList `json:"stop"`
	Stream              bool       `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	prompt []string // tokens
	limit  int
}

// The tokens that are made when a request does not say how many.
const (
	defaultTextTokens = 16
	defaultChatTokens = 256
)

// stringList is a string, a list of strings, or null.
type stringList []string

func (l *stringList) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var one string
	if json.Unmarshal(data, &one) == nil {
		*l = stringList{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

func parseText(r *http.Request) (*request, error) {
	var body struct {
		request
		Prompt stringList `json:"prompt"`
	}
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if len(body.Prompt) != 1 {
		return nil, invalid("prompt", "prompt must be one string; there are %d", len(body.Prompt))
	}
	body.prompt = tokenize(body.Prompt[0])
	return body.settle(defaultTextTokens)
}

// chatMessage is one message of a chat.
type chatMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a string, or a list of parts of which only text is served.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(c)) == nil {
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var text []string
	for _, p := range parts {
		if p.Type != "text" {
			return errors.New("only text is served, not " + p.Type)
		}
		text = append(text, p.Text)
	}
	*c = content(strings.Join(text, " "))
	return nil
}

func parseChat(r *http.Request) (*request, error) {
	var body struct {
		request
		Messages []chatMessage `json:"messages"`
	}
	if err := decode(r, &body); err != nil {
		return nil, err
	}
	if len(body.Messages) == 0 {
		return nil, invalid("messages", "messages must hold at least one message")
	}
	for _, m := range body.Messages {
		body.prompt = append(body.prompt, tokenize(string(m.Content))...)
	}
	body.prompt = append(body.prompt, answering)
	return body.settle(defaultChatTokens)
}

// settle fills in the limit and refuses what is out of bounds.
func (r *request) settle(limit int) (*request, error) {
	if r.MaxTokens != nil {
		limit = *r.MaxTokens
	}
	if r.MaxCompletionTokens != nil {
		limit = *r.MaxCompletionTokens
	}
	if limit < 1 {
		return nil, invalid("max_tokens", "max_tokens must be at least 1, not %d", limit)
	}
	if r.N != nil && *r.N != 1 {
		return nil, invalid("n", "n must be 1: every answer would be the same")
	}
	r.limit = limit
	return r, nil
}

func decode(r *http.Request, body any) error {
	data, err := io.ReadAll(r.Body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &apiError{http.StatusRequestEntityTooLarge, "invalid_request_error", "", err.Error()}
	}
	if err == nil {
		err = json.Unmarshal(data, body)
	}
	if err != nil {
		return invalid("", "the body is not a request: %v", err)
	}
	return nil
}
