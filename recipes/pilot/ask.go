package pilot

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// question is what ask sends, and where.
type question struct {
	url, model string
	stream     bool
	timeout    time.Duration
}

func askCommand() *cobra.Command {
	q := question{}
	c := &cobra.Command{
		Use:   "ask [flags] PROMPT…",
		Short: "Ask a server for a chat completion and print it; any OpenAI-style server will do",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := q.ask(c.OutOrStdout(), strings.Join(args, " ")); err != nil {
				return &exitError{1, err}
			}
			return nil
		},
	}
	c.Flags().StringVar(&q.url, "url", "http://127.0.0.1:8000", "where the server answers")
	c.Flags().StringVar(&q.model, "model", "pilot", "name of the model")
	c.Flags().BoolVar(&q.stream, "stream", false, "print the answer as it comes")
	c.Flags().DurationVar(&q.timeout, "timeout", time.Minute, "how long to wait for the answer")
	return c
}

// ask prints the answer to prompt.
func (q question) ask(out io.Writer, prompt string) error {
	body, err := json.Marshal(map[string]any{
		"model": q.model, "stream": q.stream,
		"messages": []any{map[string]any{"role": "user", "content": prompt}},
	})
	if err != nil {
		return fmt.Errorf("ask %s: %w", q.url, err)
	}
	client := http.Client{Timeout: q.timeout}
	address := strings.TrimSuffix(q.url, "/") + "/v1/chat/completions"
	r, err := client.Post(address, "application/json", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask for a completion: %w", err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 4096)) // as much of the reason as came
		return fmt.Errorf("ask for a completion: %s answered %s: %s", address, r.Status, strings.TrimSpace(string(text)))
	}
	if q.stream {
		return printStream(out, r.Body)
	}
	return printWhole(out, r.Body)
}

// completion is what ask reads of an answer.
type completion struct {
	Choices []struct{ Message, Delta struct{ Content string } }
}

func printWhole(out io.Writer, body io.Reader) error {
	var c completion
	if err := json.NewDecoder(body).Decode(&c); err != nil {
		return fmt.Errorf("read the completion: %w", err)
	}
	if len(c.Choices) == 0 {
		return fmt.Errorf("read the completion: there is no choice in it")
	}
	_, err := fmt.Fprintln(out, strings.TrimSpace(c.Choices[0].Message.Content))
	return err
}

// printStream prints the pieces of a stream. One that breaks off before [DONE] is an error.
func printStream(out io.Writer, body io.Reader) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			_, err := fmt.Fprintln(out)
			return err
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		for _, choice := range c.Choices {
			fmt.Fprint(out, choice.Delta.Content)
		}
	}
	return fmt.Errorf("read the stream: it broke off before its end: %w", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}
