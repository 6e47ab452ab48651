package sweep

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes the report for pasting into an issue: a heading, and the text
// of the terminal in a block that nothing in it can close.
func (r Report) Markdown(w io.Writer) error {
	var text strings.Builder
	if err := r.Text(&text, TextOptions{}); err != nil {
		return err
	}
	fence := fenceFor(text.String())
	_, err := fmt.Fprintf(w, "### `%s/%s`: %s\n\n%s, %s to %s, took %s, inspection %s\n\n%stext\n%s%s\n",
		safe(r.Run), safe(r.Task), r.Verdict, safe(r.Reason), r.StartedAt.UTC().Format("2006-01-02 15:04:05"),
		r.EndedAt.UTC().Format("15:04:05 UTC"), took(r.Took()), r.Host.Inspection, fence, text.String(), fence)
	return err
}

// fenceFor is a run of backticks longer than any in the text.
func fenceFor(text string) string {
	longest, run := 2, 0
	for _, c := range text {
		if run++; c != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}
