package gpu

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Card is one GPU as nvidia-smi lists it.
type Card struct {
	Index int
	UUID  string
	Name  string
	Total *int64 // bytes; null when the driver does not say, as for memory that is the host's (GB10)
	Free  *int64
}

// Cards lists the GPUs of this host. The error is exec.ErrNotFound when there is
// no nvidia-smi to ask.
func Cards(ctx context.Context) ([]Card, error) { return Reader{}.Cards(ctx) }

// Cards lists the GPUs. Only NVIDIA's driver numbers them in a way that programs
// can be told (CUDA_DEVICE_ORDER=PCI_BUS_ID).
func (r Reader) Cards(ctx context.Context) ([]Card, error) {
	smi, err := r.smi()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.wait())
	defer cancel()
	text, err := r.ask(ctx, smi, "--query-gpu=index,uuid,name,memory.total,memory.free")
	if err != nil {
		return nil, err
	}
	return parseCards(text)
}

func parseCards(text []byte) ([]Card, error) {
	rows, err := rowsOf(text)
	if err != nil {
		return nil, err
	}
	var cards []Card
	for _, row := range rows {
		if len(row) != 5 {
			return nil, fmt.Errorf("nvidia-smi gave %q, not index, uuid, name and memory", strings.Join(row, ", "))
		}
		index, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi gave %q for the number of a GPU", row[0])
		}
		cards = append(cards, Card{Index: index, UUID: row[1], Name: row[2], Total: mib(row[3]), Free: mib(row[4])})
	}
	return cards, nil
}

// mib reads a number of MiB; null for what is none ("[N/A]").
func mib(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return bytesOf(n << 20)
}
