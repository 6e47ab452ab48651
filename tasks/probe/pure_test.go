package probe

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"hob/identity"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]struct {
		port int
		addr string
		bad  bool
	}{
		"/health":                         {port: 8000},
		"/a?b=c":                          {port: 8000},
		"http://127.0.0.1:9/x":            {port: 9, addr: "127.0.0.1"},
		"http://127.9.9.9/":               {port: 80, addr: "127.9.9.9"},
		"https://[::1]/":                  {port: 443, addr: "::1"},
		"http://localhost:70/":            {port: 70},
		"http://user:secret@localhost/":   {port: 80},
		"health":                          {bad: true},
		"":                                {bad: true},
		"http://example.org/":             {bad: true},
		"http://192.168.1.1:8000/":        {bad: true},
		"http://127.0.0.1.example.org/":   {bad: true},
		"http://127.0.0.1:0/":             {bad: true},
		"http://127.0.0.1:70000/":         {bad: true},
		"ftp://127.0.0.1/":                {bad: true},
		"http://user:secret@192.168.1.1/": {bad: true},
		"//127.0.0.1:9/":                  {bad: true},
	} {
		got, err := parseTarget(text, 8000)
		if (err != nil) != want.bad {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if err != nil {
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the reason shows a password: %v", err)
			}
			continue
		}
		if got.port != want.port || got.addr.IsValid() != (want.addr != "") || want.addr != "" && got.addr.String() != want.addr {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if _, err := parseTarget("/health", 0); err == nil {
		t.Error("a path without a port")
	}
}

func socket(addr string, inode uint64) identity.Socket {
	return identity.Socket{Inode: inode, Local: netip.MustParseAddrPort(addr), Listen: true}
}

// Who listens beside us, and whether it could answer in our place.
func TestPart(t *testing.T) {
	held := func(inodes ...uint64) identity.Holders {
		h := identity.Holders{ByInode: map[uint64][]int{}}
		for _, n := range inodes {
			h.ByInode[n] = []int{5}
		}
		return h
	}
	noInode := identity.Socket{PID: 5, Local: netip.MustParseAddrPort("127.0.0.1:80"), Listen: true}
	noOwner := identity.Socket{Local: netip.MustParseAddrPort("127.0.0.1:80"), Listen: true}
	for name, c := range map[string]struct {
		on           []identity.Socket
		held         identity.Holders
		ours, rivals int
	}{
		"ours":                          {[]identity.Socket{socket("127.0.0.1:80", 1)}, held(1), 1, 0},
		"a stranger's":                  {[]identity.Socket{socket("127.0.0.1:80", 1)}, held(), 0, 1},
		"same address":                  {[]identity.Socket{socket("127.0.0.1:80", 1), socket("127.0.0.1:80", 2)}, held(1), 1, 1},
		"stranger on all":               {[]identity.Socket{socket("127.0.0.1:80", 1), socket("0.0.0.0:80", 2)}, held(1), 1, 1},
		"ours on all":                   {[]identity.Socket{socket("0.0.0.0:80", 1), socket("10.0.0.1:80", 2)}, held(1), 1, 1},
		"all of the other family":       {[]identity.Socket{socket("127.0.0.1:80", 1), socket("[::]:80", 2)}, held(1), 1, 1},
		"localhost by IPv6":             {[]identity.Socket{socket("127.0.0.1:80", 1), socket("[::1]:80", 2)}, held(1), 1, 1},
		"proxy on the outer address":    {[]identity.Socket{socket("127.0.0.1:80", 1), socket("10.0.0.1:80", 2)}, held(1), 1, 0},
		"only a proxy":                  {[]identity.Socket{socket("10.0.0.1:80", 2)}, held(), 0, 1},
		"named by pid":                  {[]identity.Socket{noInode}, held(), 1, 0},
		"named by nobody":               {[]identity.Socket{noOwner}, held(), 0, 1},
		"two of ours":                   {[]identity.Socket{socket("127.0.0.1:80", 1), socket("[::1]:80", 2)}, held(1, 2), 2, 0},
		"ours, and what cannot be read": {[]identity.Socket{socket("127.0.0.1:80", 1), socket("127.0.0.1:80", 2)}, held(2), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ours, rivals := part(c.on, c.held, []int{5})
			if len(ours) != c.ours || len(rivals) != c.rivals {
				t.Errorf("ours %v, rivals %v", ours, rivals)
			}
		})
	}
}

// [::] takes IPv4 too, and ::1 is not there where IPv6 is turned off.
func TestReach(t *testing.T) {
	for at, want := range map[string]string{
		"127.0.0.1:80": "[127.0.0.1]", "0.0.0.0:80": "[127.0.0.1]", "127.0.0.9:80": "[127.0.0.9]",
		"[::1]:80": "[::1]", "[::]:80": "[127.0.0.1 ::1]", "10.0.0.1:80": "[10.0.0.1]",
	} {
		if got := fmt.Sprint(reach([]identity.Socket{socket(at, 1)})); got != want {
			t.Errorf("%s: %s, wanted %s", at, got, want)
		}
	}
	both := []identity.Socket{socket("10.0.0.1:80", 1), socket("[::1]:80", 2), socket("127.0.0.1:80", 3)}
	if got := fmt.Sprint(reach(both)); got != "[127.0.0.1 ::1 10.0.0.1]" {
		t.Errorf("the order %s", got)
	}
}

func TestFarEnd(t *testing.T) {
	near, far := netip.MustParseAddrPort("127.0.0.1:4000"), netip.MustParseAddrPort("127.0.0.1:80")
	mine := identity.Socket{Inode: 1, Local: near, Remote: far}
	theirs := identity.Socket{Inode: 2, Local: far, Remote: near}
	queued := identity.Socket{Local: far, Remote: near}
	listener := identity.Socket{Inode: 3, Local: far, Listen: true}
	for name, c := range map[string]struct {
		all  []identity.Socket
		want string // of the error
	}{
		"accepted":         {[]identity.Socket{listener, mine, theirs}, ""},
		"in the queue":     {[]identity.Socket{listener, mine, queued}, "not accepted"},
		"closed":           {[]identity.Socket{listener, mine}, "not accepted"},
		"another netns":    {[]identity.Socket{listener, theirs}, "namespace"},
		"an empty listing": {nil, "namespace"},
	} {
		got, err := farEnd(c.all, near, far)
		if c.want == "" && (err != nil || got.Inode != 2) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestExpect(t *testing.T) {
	text := func(s string) *string { return &s }
	models := `{"models":[{"id":"a","status":"loaded"},{"id":"b","status":"loading"}],"n":0,"ok":true,"none":[],"msg":""}`
	for name, c := range map[string]struct {
		e      Expect
		status int
		body   string
		want   string // of the error; "": it matches
	}{
		"any 2xx":            {Expect{}, 204, "", ""},
		"a redirect":         {Expect{}, 302, "", "302 Found"},
		"loading":            {Expect{}, 503, `{"status":"loading"}`, "503 Service Unavailable"},
		"an odd status":      {Expect{}, 799, "", "799"},
		"this status":        {Expect{Status: 401}, 401, "", ""},
		"not this status":    {Expect{Status: 200}, 204, "", "204"},
		"body":               {Expect{Body: regexp.MustCompile(`"ok":\s*true`)}, 200, models, ""},
		"other body":         {Expect{Body: regexp.MustCompile("fine")}, 200, "not yet", "does not show"},
		"path":               {Expect{JSON: []Field{{"ok", nil}}}, 200, models, ""},
		"no such path":       {Expect{JSON: []Field{{"okay", nil}}}, 200, models, "no okay"},
		"zero":               {Expect{JSON: []Field{{"n", nil}}}, 200, models, "n = 0"},
		"empty list":         {Expect{JSON: []Field{{"none", nil}}}, 200, models, "none = []"},
		"empty text":         {Expect{JSON: []Field{{"msg", nil}}}, 200, models, "msg"},
		"value":              {Expect{JSON: []Field{{"models.0.status", text("loaded")}}}, 200, models, ""},
		"other value":        {Expect{JSON: []Field{{"models.1.status", text("loaded")}}}, 200, models, `"loading", not loaded`},
		"query":              {Expect{JSON: []Field{{`models.#(id=="a").status`, text("loaded")}}}, 200, models, ""},
		"number as text":     {Expect{JSON: []Field{{"models.#", text("2")}}}, 200, models, ""},
		"two paths":          {Expect{JSON: []Field{{"ok", nil}, {"models.#", text("2")}}}, 200, models, ""},
		"the second is not":  {Expect{JSON: []Field{{"ok", nil}, {"models.#", text("3")}}}, 200, models, "= 2, not 3"},
		"zero wanted":        {Expect{JSON: []Field{{"n", text("0")}}}, 200, models, ""},
		"no JSON":            {Expect{JSON: []Field{{"ok", nil}}}, 200, "<html>", "no JSON"},
		"empty body":         {Expect{JSON: []Field{{"ok", nil}}}, 200, "", "no JSON"},
		"status before body": {Expect{JSON: []Field{{"ok", nil}}}, 500, models, "500"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.e.match(answer{status: c.status, body: []byte(c.body)})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, wanted %q", err, c.want)
			}
		})
	}
}

func TestAttemptTime(t *testing.T) {
	for _, c := range []struct {
		check Check
		want  time.Duration
	}{
		{Check{}, 5 * time.Second},
		{Check{Timeout: time.Millisecond}, 5 * time.Second},
		{Check{Timeout: time.Minute}, time.Minute},
		{Check{Completion: true, Timeout: 10 * time.Second}, 30 * time.Second},
	} {
		if got := c.check.attempt(); got != c.want {
			t.Errorf("%+v: %v", c.check, got)
		}
	}
}

func TestMoved(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	p := func(v int) *int { return &v }
	for name, c := range map[string]struct {
		from, to Sample
		want     string
	}{
		"nothing":               {Sample{}, Sample{}, ""},
		"log":                   {Sample{Log: 5}, Sample{Log: 6}, "log"},
		"log rotated":           {Sample{Log: 5}, Sample{Log: 1}, ""},
		"memory grows":          {Sample{Memory: n(0)}, Sample{Memory: n(8 << 20)}, "memory"},
		"memory shrinks":        {Sample{Memory: n(9 << 20)}, Sample{Memory: n(0)}, "memory"},
		"memory trembles":       {Sample{Memory: n(0)}, Sample{Memory: n(8<<20 - 1)}, ""},
		"memory became unknown": {Sample{Memory: n(9 << 20)}, Sample{}, ""},
		"memory became known":   {Sample{}, Sample{Memory: n(9 << 30)}, ""},
		"disk":                  {Sample{Disk: n(0)}, Sample{Disk: n(1 << 20)}, "disk reads"},
		"disk trembles":         {Sample{Disk: n(0)}, Sample{Disk: n(4096)}, ""},
		"progress":              {Sample{Percent: p(4), Log: 1}, Sample{Percent: p(5), Log: 2}, "progress 5%"},
		"progress stands":       {Sample{Percent: p(5)}, Sample{Percent: p(5)}, ""},
	} {
		if got := Moved(c.from, c.to); got != c.want {
			t.Errorf("%s: %q, wanted %q", name, got, c.want)
		}
	}
}

func TestDeadline(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := Patience{Start: start, Timeout: 5 * time.Minute}
	own := Patience{Start: start, Timeout: time.Minute, Quiet: 20 * time.Second, Hard: 90 * time.Second}
	const never = -1
	for name, c := range map[string]struct {
		p           Patience
		moved, want time.Duration // from start
	}{
		"never moved":             {p, never, 5 * time.Minute},
		"moved early":             {p, time.Minute, 5 * time.Minute},
		"moved late":              {p, 4*time.Minute + 30*time.Second, 5*time.Minute + 30*time.Second},
		"moved after the timeout": {p, 7 * time.Minute, 8 * time.Minute},
		"the hard limit":          {p, 19*time.Minute + 30*time.Second, 20 * time.Minute},
		"beyond the hard limit":   {p, time.Hour, 20 * time.Minute},
		"a short timeout":         {Patience{Start: start, Timeout: time.Second}, time.Second, 4 * time.Second},
		"quiet at least 10 s":     {Patience{Start: start, Timeout: 20 * time.Second}, 20 * time.Second, 30 * time.Second},
		"quiet at most 2 m":       {Patience{Start: start, Timeout: time.Hour}, time.Hour, time.Hour + 2*time.Minute},
		"own quiet":               {own, time.Minute, 80 * time.Second},
		"own hard":                {own, 85 * time.Second, 90 * time.Second},
		"hard below the timeout":  {Patience{Start: start, Timeout: time.Minute, Hard: time.Second}, time.Minute, time.Minute},
		"a clock that went back":  {p, -time.Hour, 5 * time.Minute},
	} {
		moved := start.Add(c.moved)
		if c.moved == never {
			moved = time.Time{}
		}
		if got := c.p.Deadline(moved).Sub(start); got != c.want {
			t.Errorf("%s: %v, wanted %v", name, got, c.want)
		}
	}
}

func TestFresh(t *testing.T) {
	health := Check{HTTP: "/health"}
	for name, c := range map[string]struct {
		check Check
		log   string
		moves bool
	}{
		"nothing":              {health, "", false},
		"blank lines":          {health, "\n \r\n", false},
		"a loader":             {health, "Loading shard 3/9\n", true},
		"uvicorn's echo":       {health, "INFO:     127.0.0.1:45678 - \"GET /health HTTP/1.1\" 503 Service Unavailable\n", false},
		"echo and work":        {health, "GET /health HTTP/1.1\nLoading shard 4/9\n", true},
		"a bar over an echo":   {health, "45%\r46%\rGET /health HTTP/1.1\n", true},
		"an unfinished line":   {health, "Loading", true},
		"by URL":               {Check{HTTP: "http://127.0.0.1:1/v1/ok?x=y"}, "POST /v1/ok\n", false},
		"the root":             {Check{HTTP: "/"}, "\"GET / HTTP/1.1\" 404\n", false},
		"a path, not the root": {Check{HTTP: "/"}, "reading /models/a.gguf\n", true},
		"completion":           {Check{Completion: true}, "POST /v1/chat/completions 503\nGET /v1/models\n", false},
		"tcp":                  {Check{TCP: true}, "x\n", true},
	} {
		if got := c.check.Fresh([]byte(c.log)) > 0; got != c.moves {
			t.Errorf("%s: moves %v", name, got)
		}
	}
}
