package probe

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Progress is how far a task says that it has come.
type Progress struct {
	Percent int     // 0 to 100
	What    string  // as the log words it ("Loading safetensors checkpoint shards"), may be ""
	Done    float64 // in Unit; Total is 0 where the log gives the percentage alone
	Total   float64 //
	Unit    string  // "" (pieces, shards), "B", "KB", "MB", "GB", "GiB", …
}

// tail is how much of a log's end is searched: a bar that was drawn longer ago
// is not what the task does now.
const tail = 8 << 10

// The forms that progress takes in the logs of model servers and downloaders.
var (
	escapes = lazy("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)?")
	percent = lazy(`(^|[^0-9.])([0-9]{1,3})(?:\.[0-9]+)? ?%`)
	ratio   = lazy(`(^|[^0-9A-Za-z./:-])([0-9]+(?:\.[0-9]+)?) ?([KMGTkmgt]?i?B?) ?(?:/|of) ?([0-9]+(?:\.[0-9]+)?) ?([KMGTkmgt]?i?B?)([^0-9A-Za-z./]|$)`)
	// verbs keep usage and load ("GPU KV cache usage: 12%") from being read as progress.
	verbs = lazy(`(?i)\b(load|download|pull|fetch|read|writ|convert|captur|compil|warm|shard|quanti|verif|extract|copy|progress|weights|checkpoint)`)
	never = lazy(`(?i)(usage|utili[sz]ation|throughput|hit rate|HTTP/[0-9])`)
)

// LastProgress finds the newest progress in a log. Pure; for a bar on a terminal
// and for [Sample].Percent.
func LastProgress(log []byte) (Progress, bool) {
	if len(log) > tail {
		log = log[len(log)-tail:]
	}
	lines := bytes.FieldsFunc(log, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if p, ok := parseProgress(string(line)); ok {
			return p, true
		}
	}
	return Progress{}, false
}

// parseProgress reads one state of one bar or one line.
func parseProgress(line string) (Progress, bool) {
	line = escapes().ReplaceAllString(line, "")
	bar := strings.Contains(line, "%|") // tqdm draws its bar right after the percentage
	if never().MatchString(line) || !bar && !verbs().MatchString(line) {
		return Progress{}, false
	}
	var p Progress
	at, known := len(line), false
	if m := percent().FindStringSubmatchIndex(line); m != nil {
		n, err := strconv.Atoi(line[m[4]:m[5]])
		if known = err == nil && n <= 100; known {
			p.Percent, at = n, m[4]
		}
	}
	if m := ratio().FindStringSubmatchIndex(line); m != nil {
		if p.ratio(line, m) && !known {
			p.Percent, at, known = int(100*p.Done/p.Total), m[4], true
		}
	}
	p.What = label(line[:at])
	return p, known
}

// ratio reads "3/9", "1.2G/9.9G" or "1.2 GB of 9.9 GB". Two different units
// ("900M/1.2G") are read as the second.
func (p *Progress) ratio(line string, m []int) bool {
	done, err1 := strconv.ParseFloat(line[m[4]:m[5]], 64)
	total, err2 := strconv.ParseFloat(line[m[8]:m[9]], 64)
	from, to := unit(line[m[6]:m[7]]), unit(line[m[10]:m[11]])
	if from != "" && from != to {
		done *= scale(from) / scale(to)
	}
	if err1 != nil || err2 != nil || total <= 0 || done > total {
		return false
	}
	p.Done, p.Total, p.Unit = done, total, to
	return true
}

// unit writes a size's unit out: tqdm says G for GB.
func unit(s string) string {
	s = strings.ToUpper(strings.TrimSuffix(s, "B"))
	if s == "" {
		return ""
	}
	return strings.Replace(s, "I", "i", 1) + "B"
}

// scale is the size of a unit in bytes.
func scale(unit string) float64 {
	base := 1000.0
	if strings.Contains(unit, "i") {
		base = 1024
	}
	size := 1.0
	for range strings.IndexByte("BKMGT", (unit + "B")[0]) {
		size *= base
	}
	return size
}

// label is what stands before the numbers, without the frame around it.
func label(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), ":|([-= \t")
	if i := strings.LastIndex(s, "] "); i >= 0 { // a time, a rank, a level
		s = s[i+2:]
	}
	return strings.TrimSpace(s)
}
