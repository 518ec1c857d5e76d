package webhook

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
)

// MaxURL is the longest URL of a webhook, in bytes.
const MaxURL = 2048

// special are the networks whose addresses are global unicast by their form, but lead to
// this machine, to a local network, to other addresses, or nowhere.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by the customers of a provider
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // tunnels, with IPv4 addresses inside
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // IPv4 addresses inside
	netip.MustParsePrefix("3fff::/20"),
}

// globalIPv6 has every address of IPv6 that is in use on the internet. The addresses
// outside include those with an IPv4 address inside, such as 64:ff9b::10.0.0.1.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

// isPublic reports whether an address is one of the internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	return a.Zone() == "" && a.IsGlobalUnicast() && !a.IsPrivate() && (a.Is4() || globalIPv6.Contains(a)) &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

func isAllowed(a netip.Addr, allow []netip.Prefix) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(a) })
}

func rejected(format string, args ...any) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Invalid, format, args...)
}

// Check refuses the URL of a webhook that no request would be sent to; the error is
// [tapedeck.Invalid]. A name is not resolved here: what counts is the address at the time
// of the connection.
func (c *Client) Check(text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > MaxURL:
		return rejected("the URL of the webhook has more than %d bytes", MaxURL)
	case err != nil || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return rejected("the URL of the webhook is not valid")
	case u.Scheme != "https" && u.Scheme != "http":
		return rejected("the URL of the webhook begins with neither https:// nor http://")
	case u.User != nil || u.Fragment != "":
		return rejected("the URL of the webhook has a user name or a fragment").WithHint("the receiver checks a header of the request instead of a password")
	case !IsHost(u.Hostname()) || !IsPort(u.Port()):
		return rejected("the URL of the webhook has no valid host")
	}
	return c.checkHost(u)
}

func (c *Client) checkHost(u *url.URL) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	address, err := netip.ParseAddr(host)
	isName := err != nil
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		address, isName = netip.AddrFrom4([4]byte{127, 0, 0, 1}), false
	}
	switch {
	case isName && endsInNumber(host):
		return rejected("the host of the webhook is neither a name nor an address").WithHint("write an address as 192.0.2.1, with four decimal numbers")
	case !isName && isAllowed(address, c.allow):
		return nil
	case !isName && !isPublic(address):
		return rejected("the address of the webhook is not public").
			WithHint("start the server with --webhook-allow %s to allow it", netip.PrefixFrom(address.WithZone(""), address.BitLen()))
	case u.Scheme == "http" && (!isName || len(c.allow) == 0):
		return rejected("the URL of the webhook begins with http://").
			WithHint("use https; http is only for addresses that --webhook-allow names")
	}
	return nil
}

// endsInNumber reports whether the last label of a host is a number. Such a host is no name:
// many resolvers take 127.1, 0x7f000001 and 2130706433 for 127.0.0.1.
func endsInNumber(host string) bool {
	label := host[strings.LastIndexByte(host, '.')+1:]
	digits, isHex := strings.CutPrefix(label, "0x")
	return strings.Trim(label, "0123456789") == "" || isHex && strings.Trim(digits, "0123456789abcdef") == ""
}

// IsHost reports whether a host can be in a URL.
func IsHost(host string) bool {
	return host != "" && len(host) <= 255 && !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > 0x7e })
}

// IsPort reports whether a port can be in a URL; "" is one.
func IsPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}
