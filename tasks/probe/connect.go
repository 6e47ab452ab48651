package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"hob/identity"
)

// target is where a probe connects to.
type target struct {
	port int
	addr netip.Addr // the zero value: where the task listens, loopback first
	url  *url.URL   // of an HTTP probe; its host may be empty
}

var (
	loop4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loop6 = netip.IPv6Loopback()
)

// parseTarget reads the recipe's http: a path on the task's port, or a whole URL,
// which must be on loopback: what another machine answers says nothing of the task.
func parseTarget(text string, port int) (target, error) {
	u, err := url.Parse(text)
	if err != nil {
		return target{}, fmt.Errorf("probe %q: %w", text, err)
	}
	if u.Host == "" {
		if !strings.HasPrefix(text, "/") {
			return target{}, fmt.Errorf("probe %q: neither a path (/health) nor a URL", text)
		}
		if port == 0 {
			return target{}, fmt.Errorf("probe %q: the task has no port", text)
		}
		return target{port: port, url: u}, nil
	}
	return parseURL(u)
}

// anonymous is the target without the user and password that its URL may have.
func (t target) anonymous() target {
	u := *t.url
	u.User, t.url = nil, &u
	return t
}

func parseURL(u *url.URL) (target, error) {
	t := target{url: u, port: 80}
	if u.Scheme != "http" && u.Scheme != "https" {
		return t, fmt.Errorf("probe %s: http or https only", u.Redacted())
	}
	if u.Scheme == "https" {
		t.port = 443
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return t, fmt.Errorf("probe %s: no such port", u.Redacted())
		}
		t.port = int(n)
	}
	if u.Hostname() == "localhost" {
		return t, nil
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || !ip.IsLoopback() {
		return t, fmt.Errorf("probe %s: only this machine's loopback can be probed", u.Redacted())
	}
	t.addr = ip
	return t, nil
}

// connect opens the connection that the probe holds, after a look at who listens.
func (a attempt) connect(ctx context.Context, t target) (net.Conn, error) {
	try := []netip.Addr{loop4, loop6}
	if !a.check.AnyOwner {
		ours, err := a.listeners(ctx, t.port)
		if err != nil {
			return nil, err
		}
		try = reach(ours)
	}
	if t.addr.IsValid() {
		try = []netip.Addr{t.addr}
	}
	return dial(ctx, try, t.port)
}

// reach are the addresses at which the listeners can be reached, IPv4 loopback
// first: it is what clients are told, and what is there when IPv6 is off.
func reach(ours []identity.Socket) []netip.Addr {
	var v4, v6, other []netip.Addr
	for _, s := range ours {
		switch ip := s.Local.Addr(); {
		case ip.IsUnspecified() && ip.Is6():
			v4, v6 = append(v4, loop4), append(v6, loop6) // it takes IPv4 too, unless v6only
		case ip.IsUnspecified():
			v4 = append(v4, loop4)
		case ip.IsLoopback() && ip.Is4():
			v4 = append(v4, ip)
		case ip.IsLoopback():
			v6 = append(v6, ip)
		default:
			other = append(other, ip)
		}
	}
	return append(append(v4, v6...), other...)
}

// dial takes the first address that answers.
func dial(ctx context.Context, try []netip.Addr, port int) (net.Conn, error) {
	var first error
	for _, ip := range try {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", netip.AddrPortFrom(ip, uint16(port)).String())
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("nothing answers on port %d: %w", port, first)
}
