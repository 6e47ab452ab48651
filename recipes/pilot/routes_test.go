package pilot

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// field is a line of /proc/PID/status.
func field(status, name string) string {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func ignores(mask string, signal int) bool {
	bits, err := strconv.ParseUint(mask, 16, 64)
	return err == nil && bits&(1<<(signal-1)) != 0
}

func TestRoutes(t *testing.T) {
	r := startPilot(t, "--model", "tiny", "--context", "20", "--route", "/info", "--route", "/health_generate")
	r.untilHealthy()
	for _, c := range []struct {
		name, path, body string
		status           int
		has              string
	}{
		{"completion", "/v1/completions", `{"model":"tiny","prompt":"The cook leaves"}`, 200, `"text":" the room,`},
		{"ends", "/v1/completions", `{"prompt":"Models cook on"}`, 200, `"finish_reason":"stop"`},
		{"counts", "/v1/completions", `{"prompt":["The cook leaves"],"max_tokens":2}`, 200, `"usage":{"completion_tokens":2,"prompt_tokens":3,"total_tokens":5}`},
		{"limit", "/v1/completions", `{"prompt":"The cook leaves","max_tokens":2}`, 200, `"finish_reason":"length"`},
		{"stop", "/v1/completions", `{"prompt":"The cook leaves","stop":"flame"}`, 200, `"text":" the room, the "`},
		{"stops", "/v1/completions", `{"prompt":"The cook leaves","stop":["x","room"]}`, 200, `"finish_reason":"stop","index":0,"text":" the "`},
		{"no stop", "/v1/completions", `{"prompt":"Thank you","stop":null}`, 200, `"object":"text_completion"`},
		{"chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":"Thank you"}]}`, 200, `"content":"You are welcome.","role":"assistant"`},
		{"parts", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"Thank you"}]}]}`, 200, `You are welcome.`},
		{"chat limit", "/v1/chat/completions", `{"max_completion_tokens":1,"messages":[{"role":"user","content":"Thank you"}]}`, 200, `"content":"You"`},
		{"image", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, `only text`},
		{"other model", "/v1/completions", `{"model":"big","prompt":"a"}`, 404, `"param":"model","type":"not_found_error"`},
		{"no json", "/v1/completions", `{`, 400, `"type":"invalid_request_error"`},
		{"no prompt", "/v1/completions", `{}`, 400, `prompt must be one string`},
		{"wrong type", "/v1/completions", `{"prompt":3}`, 400, `not a request`},
		{"no messages", "/v1/chat/completions", `{}`, 400, `"param":"messages"`},
		{"no tokens", "/v1/completions", `{"prompt":"a","max_tokens":0}`, 400, `"param":"max_tokens"`},
		{"many", "/v1/completions", `{"prompt":"a","n":2}`, 400, `"param":"n"`},
		{"too long", "/v1/completions", `{"prompt":"` + strings.Repeat("a ", 20) + `"}`, 400, `20 tokens long`},
		{"context ends", "/v1/completions", `{"prompt":"` + strings.Repeat("a ", 18) + `","max_tokens":9}`, 200, `"completion_tokens":2`},
		{"huge", "/v1/completions", `{"prompt":"` + strings.Repeat("a", maxBody) + `"}`, 413, `too large`},
		{"no such route", "/v1/nonesuch", `{}`, 404, `no route POST /v1/nonesuch`},
		{"read only", "/v1/models", `{}`, 404, `no route POST /v1/models`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := r.post(c.path, c.body)
			if status != c.status || !strings.Contains(body, c.has) {
				t.Errorf("%d %s\nwant %d and %s", status, body, c.status, c.has)
			}
		})
	}
	for path, want := range map[string]int{"/v1/models": 200, "/health": 200, "/health_generate": 200, "/info": 200, "/": 404} {
		if got := r.get(path); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
}

// chunks are the events of a stream but the last, which must be [DONE].
func chunks(t *testing.T, body string) (all []map[string]any) {
	t.Helper()
	events := strings.Split(strings.TrimSpace(body), "\n\n")
	if last := events[len(events)-1]; last != "data: [DONE]" {
		t.Fatalf("the stream ends with %q", last)
	}
	for _, event := range events[:len(events)-1] {
		var chunk map[string]any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &chunk); err != nil {
			t.Fatalf("%q: %v", event, err)
		}
		all = append(all, chunk)
	}
	return all
}

func TestStream(t *testing.T) {
	r := startPilot(t)
	r.untilHealthy()
	status, body := r.post("/v1/chat/completions",
		`{"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Thank you"}]}`)
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	all := chunks(t, body)
	var text strings.Builder
	for _, chunk := range all[:len(all)-1] {
		if chunk["object"] != "chat.completion.chunk" {
			t.Errorf("object %v", chunk["object"])
		}
		delta := chunk["choices"].([]any)[0].(map[string]any)["delta"].(map[string]any)
		text.WriteString(delta["content"].(string))
	}
	if text.String() != "You are welcome." {
		t.Errorf("streamed %q", text.String())
	}
	if usage := all[len(all)-1]["usage"].(map[string]any); usage["completion_tokens"] != 3.0 || usage["prompt_tokens"] != 3.0 {
		t.Errorf("usage %v", usage)
	}
}

func TestAskStreams(t *testing.T) {
	r := startPilot(t, "--workers", "2")
	r.untilHealthy()
	var out bytes.Buffer
	q := question{url: r.url, model: "pilot", stream: true, timeout: patience}
	if err := q.ask(&out, "Count to five"); err != nil || out.String() != "One, two, three, four, five.\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	q.model = "other"
	if err := q.ask(&out, "Count"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("asked for another model: %v", err)
	}
}

func TestStreamThatBreaksOff(t *testing.T) {
	if err := printStream(&bytes.Buffer{}, strings.NewReader("data: {}\n\n")); err == nil {
		t.Error("a stream without [DONE] is no error")
	}
}
