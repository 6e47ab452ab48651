package recipes

import "testing"

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{
		"0": 0, "512": 512, "512b": 512, "1k": 1000, "1kB": 1000, "1 KiB": 1024, "1Ki": 1024, "500MB": 500e6, "18GiB": 18 << 30,
		"1.5G": 15e8, "1.5gi": 3 << 29, "1,024 k": 1024e3, "2TiB": 2 << 40, "3PB": 3e15, "1EiB": 1 << 60, ".5k": 500, "5. k": 5000,
		"9007199254740993": 9007199254740993, "18446744073709551615": 1<<64 - 1, "1.9b": 1,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", " ", "b", "GiB", "1x", "1bb", "1kk", "1 i", "1ib", "-1", "+1", "1.2.3", "1e3", "0x10", "1GiBs", "1 G iB", "16EiB", "99999EB",
		"18446744073709551616", "18.5EB", " 1", "٣", "1٣k", "1µ"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("%q is a size: %d", s, got)
		}
	}
}
