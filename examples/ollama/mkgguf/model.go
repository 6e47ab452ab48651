package main

import "fmt"

// sentence is what the model says. The mark in front of a word is the
// tokenizer's space.
var sentence = []string{"▁Hello", "▁from", "▁a", "▁tiny", "▁model", "▁that", "▁runs", "▁for", "▁real", "."}

// The kinds of token, as SentencePiece and GGUF number them.
const (
	normal  int32 = 1
	unknown int32 = 2
	control int32 = 3
	unused  int32 = 5
	raw     int32 = 6 // a byte
)

// The first tokens of every vocabulary here.
const (
	tokenUnknown = iota
	tokenBegin
	tokenEnd
)

// vocabularySize divides by heads, and by the alignment of tensor data.
const (
	vocabularySize = 320
	heads          = 5
	feedForward    = 320
)

// vocabulary is the tokens: three controls, 256 bytes, the sentence, and filling.
type vocabulary struct {
	tokens []string
	kinds  []int32
	next   []int // the token that follows each token
}

func newVocabulary(words []string) *vocabulary {
	v := &vocabulary{}
	v.add("<unk>", unknown)
	v.add("<s>", control)
	v.add("</s>", control)
	for b := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", b), raw)
	}
	first := len(v.tokens)
	for _, word := range words {
		v.add(word, normal)
	}
	last := len(v.tokens) - 1
	for n := len(v.tokens); n < vocabularySize; n++ {
		v.add(fmt.Sprintf("<pad%d>", n), unused)
	}
	v.chain(first, last)
	return v
}

func (v *vocabulary) add(token string, kind int32) {
	v.tokens = append(v.tokens, token)
	v.kinds = append(v.kinds, kind)
}

// chain makes the words from first to last follow each other; anything else begins them.
func (v *vocabulary) chain(first, last int) {
	v.next = make([]int, len(v.tokens))
	for i := range v.next {
		switch {
		case i == last:
			v.next[i] = tokenEnd
		case i >= first && i < last:
			v.next[i] = i + 1
		default:
			v.next[i] = first
		}
	}
}

// tensor is a weight: its name, its dimensions with the fastest first, its values.
type tensor struct {
	name string
	dims []uint64
	data []float32
}

// model is all the weights. The hidden state of a token is its one-hot
// embedding, which zero blocks pass on unchanged; row r of the head is hot in
// the column of each token that r follows.
func model(v *vocabulary, layers int) []tensor {
	n := len(v.tokens)
	embedding, head := make([]float32, n*n), make([]float32, n*n)
	for i := range n {
		embedding[i*n+i] = 1
		head[v.next[i]*n+i] = 2
	}
	width := uint64(n)
	tensors := []tensor{{"token_embd.weight", []uint64{width, width}, embedding}}
	for layer := range layers {
		tensors = append(tensors, block(layer, width)...)
	}
	return append(tensors,
		tensor{"output_norm.weight", []uint64{width}, ones(n)},
		tensor{"output.weight", []uint64{width, width}, head})
}

// block is one layer that adds nothing to what passes through it.
func block(layer int, width uint64) []tensor {
	norm := func(name string) tensor {
		return tensor{fmt.Sprintf("blk.%d.%s.weight", layer, name), []uint64{width}, ones(int(width))}
	}
	zero := func(name string, in, out uint64) tensor {
		return tensor{fmt.Sprintf("blk.%d.%s.weight", layer, name), []uint64{in, out}, make([]float32, in*out)}
	}
	return []tensor{
		norm("attn_norm"),
		zero("attn_q", width, width), zero("attn_k", width, width), zero("attn_v", width, width), zero("attn_output", width, width),
		norm("ffn_norm"),
		zero("ffn_gate", width, feedForward), zero("ffn_up", width, feedForward), zero("ffn_down", feedForward, width),
	}
}

func ones(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = 1
	}
	return values
}
