package main

import (
	"encoding/binary"
	"io"
	"math"
)

// What the format calls things.
const (
	magic     = "GGUF"
	version   = 3
	alignment = 32

	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9

	tensorFloat32 = 0
)

// buffer is bytes in the byte order of the format.
type buffer []byte

func (b *buffer) uint32(v uint32)   { *b = binary.LittleEndian.AppendUint32(*b, v) }
func (b *buffer) uint64(v uint64)   { *b = binary.LittleEndian.AppendUint64(*b, v) }
func (b *buffer) float32(v float32) { b.uint32(math.Float32bits(v)) }

func (b *buffer) text(s string) {
	b.uint64(uint64(len(s)))
	*b = append(*b, s...)
}

func (b *buffer) align() {
	*b = append(*b, make([]byte, padding(len(*b)))...)
}

func padding(size int) int { return (alignment - size%alignment) % alignment }

// metadata is the keys and values in front of the tensors, and how many there are.
type metadata struct {
	buffer
	count uint64
}

func (m *metadata) key(name string, kind uint32) {
	m.text(name)
	m.uint32(kind)
	m.count++
}

func (m *metadata) string(name, value string) {
	m.key(name, typeString)
	m.text(value)
}

func (m *metadata) number(name string, value int) {
	m.key(name, typeUint32)
	m.uint32(uint32(value))
}

func (m *metadata) float(name string, value float32) {
	m.key(name, typeFloat32)
	m.float32(value)
}

func (m *metadata) yes(name string) {
	m.key(name, typeBool)
	m.buffer = append(m.buffer, 1)
}

func (m *metadata) array(name string, kind uint32, length int) {
	m.key(name, typeArray)
	m.uint32(kind)
	m.uint64(uint64(length))
}

// encode is all that stands before the data of the tensors.
func encode(v *vocabulary, tensors []tensor, layers, context int) []byte {
	var m metadata
	m.shape(layers, context)
	m.tokenizer(v)
	b := buffer(magic)
	b.uint32(version)
	b.uint64(uint64(len(tensors)))
	b.uint64(m.count)
	b = append(b, m.buffer...)
	var offset uint64
	for _, t := range tensors {
		b.text(t.name)
		b.uint32(uint32(len(t.dims)))
		for _, d := range t.dims {
			b.uint64(d)
		}
		b.uint32(tensorFloat32)
		b.uint64(offset)
		size := 4 * len(t.data)
		offset += uint64(size + padding(size))
	}
	b.align()
	return b
}

// shape is what the architecture needs to know.
func (m *metadata) shape(layers, context int) {
	m.string("general.architecture", "llama")
	m.string("general.name", "tiny-handmade")
	m.number("general.alignment", alignment)
	m.number("general.file_type", 0)
	m.number("llama.context_length", context)
	m.number("llama.embedding_length", vocabularySize)
	m.number("llama.block_count", layers)
	m.number("llama.feed_forward_length", feedForward)
	m.number("llama.attention.head_count", heads)
	m.number("llama.attention.head_count_kv", heads)
	m.number("llama.rope.dimension_count", vocabularySize/heads)
	m.number("llama.vocab_size", vocabularySize)
	m.float("llama.attention.layer_norm_rms_epsilon", 1e-5)
	m.float("llama.rope.freq_base", 10000)
}

func (m *metadata) tokenizer(v *vocabulary) {
	m.string("tokenizer.ggml.model", "llama")
	m.string("tokenizer.ggml.pre", "default")
	m.number("tokenizer.ggml.unknown_token_id", tokenUnknown)
	m.number("tokenizer.ggml.bos_token_id", tokenBegin)
	m.number("tokenizer.ggml.eos_token_id", tokenEnd)
	m.yes("tokenizer.ggml.add_bos_token")
	m.array("tokenizer.ggml.tokens", typeString, len(v.tokens))
	for _, token := range v.tokens {
		m.text(token)
	}
	m.array("tokenizer.ggml.scores", typeFloat32, len(v.tokens))
	for i := range v.tokens {
		m.float32(float32(-i))
	}
	m.array("tokenizer.ggml.token_type", typeInt32, len(v.kinds))
	for _, kind := range v.kinds {
		m.uint32(uint32(kind))
	}
}

// write writes the data of a tensor and its padding.
func (t tensor) write(w io.Writer) error {
	b := make(buffer, 0, 4*len(t.data)+alignment)
	for _, value := range t.data {
		b.float32(value)
	}
	b.align()
	_, err := w.Write(b)
	return err
}
