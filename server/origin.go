package server

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// opaque is the origin of every sandboxed frame and of every file, of any author.
const opaque = "null"

// Origin returns an origin for [Options.AllowOrigins] as browsers write it: in lower
// case and without the default port of its scheme. It refuses an origin that no browser
// sends, because it would allow nothing.
func Origin(s string) (string, error) {
	if s == "*" || s == opaque {
		return s, nil
	}
	wrong := tapedeck.Errorf(tapedeck.Invalid, `an origin is written as https://app.example or "*", not %q`, s)
	u, err := url.Parse(strings.ToLower(s))
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || strings.ContainsAny(s, "?#") {
		return "", wrong
	}
	switch u.Scheme {
	case "", "ftp", "file", "ws", "wss":
		return "", tapedeck.Errorf(tapedeck.Invalid, "an origin has the scheme http, https, or that of an app such as capacitor://localhost; %q has another", s)
	}
	host, err := originHost(u.Hostname())
	if err != nil {
		return "", err
	}
	port := strings.TrimLeft(u.Port(), "0")
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return u.Scheme + "://" + host, nil
	}
	if len(port) > 5 || len(port) == 5 && port > "65535" {
		return "", wrong
	}
	return u.Scheme + "://" + host + ":" + port, nil
}

// originHost returns a lower-case host as it is written in an origin.
func originHost(host string) (string, error) {
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil || ip.Zone() != "" {
			return "", tapedeck.Errorf(tapedeck.Invalid, "%q is no address that an origin can have", host)
		}
		return "[" + ip.String() + "]", nil
	}
	for _, c := range host {
		switch {
		case c == '*':
			return "", tapedeck.Errorf(tapedeck.Invalid, `%q has a wildcard, which an origin cannot have; name each origin, or "*" for all`, host)
		case c > 0x7f:
			return "", tapedeck.Errorf(tapedeck.Invalid, "browsers send the ASCII form (xn--…) of %q", host)
		case c != '-' && c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z'):
			return "", tapedeck.Errorf(tapedeck.Invalid, "%q is no host", host)
		}
	}
	if host == "" {
		return "", tapedeck.Errorf(tapedeck.Invalid, "the origin has no host")
	}
	return host, nil
}
