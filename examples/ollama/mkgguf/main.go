// Command mkgguf writes a small, valid model in the GGUF format, llama
// architecture, whose weights are set by hand: embeddings are one-hot, attention
// and feed-forward layers add nothing, and the output head is a next-token
// table. So a real server loads it and really computes, and every prompt is
// answered with one fixed sentence.
//
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	out := flag.String("o", "tiny.gguf", "file to write")
	layers := flag.Int("layers", 2, "blocks of about 3 MB each: more make a file that loads slower")
	context := flag.Int("context", 2048, "context length")
	flag.Parse()
	if err := run(*out, *layers, *context); err != nil {
		fmt.Fprintln(os.Stderr, "mkgguf:", err)
		os.Exit(1)
	}
}

func run(out string, layers, context int) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close() // after a good Close this one says that it is closed already
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w, layers, context); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	return f.Close()
}

// write writes header, metadata, the list of tensors and their data, each tensor aligned.
func write(w io.Writer, layers, context int) error {
	v := newVocabulary(sentence)
	tensors := model(v, layers)
	header := encode(v, tensors, layers, context)
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := t.write(w); err != nil {
			return err
		}
	}
	return nil
}
