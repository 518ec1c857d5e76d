package main

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/access/jwt"
	"github.com/tapedeck/tapedeck/access/tokens"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
	"github.com/tapedeck/tapedeck/deck"
)

// hostOf returns the host of an address to listen on, which a flag has.
func hostOf(flag, address, example string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || strings.Contains(port, "/") {
		return "", usageError("%s takes a host and a port, such as %s, not %q", flag, nearAddress(address, example), address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", usageError("%s has the port %q; a port is a number from 0 to 65535, such as in %s", flag, port, example)
	}
	return host, nil
}

// nearAddress returns an address that is like one that is written wrongly: a port, a host, or
// the URL of a server. Otherwise it returns the example.
func nearAddress(wrong, example string) string {
	host, port, _ := net.SplitHostPort(example) // it is right
	if _, err := strconv.ParseUint(wrong, 10, 16); err == nil {
		return net.JoinHostPort(host, wrong)
	}
	if u, err := url.Parse(wrong); err == nil && strings.HasPrefix(u.Scheme, "http") && u.Hostname() != "" {
		return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	}
	if net.ParseIP(wrong) != nil || wrong == "localhost" {
		return net.JoinHostPort(wrong, port)
	}
	return example
}

// knownHost refuses a host that has no address, before anything else is said about it.
func knownHost(ctx context.Context, flag, host, example string) error {
	if host == "" || net.ParseIP(host) != nil || strings.Contains(host, "%") {
		return nil
	}
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil && ctx.Err() == nil {
		return usageError("%s names the host %s, which has no address here; write an address of this machine, such as %s", flag, host, example)
	}
	return ctx.Err()
}

// checkListen refuses an address that other machines can reach, unless requests need a
// token or the user insists. It reports whether only this machine can reach it.
func (f *serveFlags) checkListen(ctx context.Context) (loopback bool, err error) {
	host, err := hostOf("--listen", f.listen, defaultListen)
	if err == nil {
		err = knownHost(ctx, "--listen", host, defaultListen)
	}
	if err != nil {
		return false, err
	}
	loopback = host == "localhost"
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		loopback = true
	}
	switch {
	case f.auth != "" && f.insecure:
		return loopback, usageError("--auth and --insecure cannot be used together")
	case f.auth != "" && f.demo:
		return loopback, usageError("--demo is for a server without access control; it cannot be used with --auth")
	case !loopback && !f.insecure && f.auth == "":
		return false, &exitError{exitUsage, tapedeck.Errorf(tapedeck.Invalid, "other machines can reach %s, and this server has no access control", f.listen).
			WithHint("give it a file of tokens with --auth (see tapedeck token), listen on 127.0.0.1 behind a proxy that authenticates requests, or pass --insecure")}
	}
	return loopback, nil
}

// access returns who may use the server, nil for everybody.
func (f *serveFlags) access(ctx context.Context, c *agentconfig.Config, log *slog.Logger) (*deck.Access, error) {
	if f.auth == "" {
		return nil, nil
	}
	set, err := tokens.Open(tokens.Options{Path: f.auth, Logger: log})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if err := f.hideFrom(c, set); err != nil {
		return nil, err
	}
	out := &deck.Access{Verifiers: []gate.Verifier{set}, Run: set.Run, Quotas: set.Quotas, OIDC: set.OIDC()}
	out.Changes = func(use func(deck.TokenChange)) {
		set.Changes(func(t tokens.Token, removed bool) {
			use(deck.TokenChange{ID: t.ID, Subject: t.Subject, Role: t.Role, Removed: removed})
		})
	}
	if j := set.JWT(); j != nil {
		v, err := jwt.New(ctx, *j, log)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		out.Verifiers = append(out.Verifiers, v)
	}
	return out, nil
}

// hideFrom hides the files of access control from confined agents.
func (f *serveFlags) hideFrom(c *agentconfig.Config, set *tokens.Set) error {
	files := []string{f.auth}
	if j := set.JWT(); j != nil && j.SecretFile != "" {
		files = append(files, j.SecretFile)
	}
	if o := set.OIDC(); o != nil && o.ClientSecretFile != "" {
		files = append(files, o.ClientSecretFile)
	}
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		c.Secrets.Hidden = append(c.Secrets.Hidden, path)
	}
	return nil
}

// hosts are the values of --allow-host.
type hosts []string

func (h *hosts) Set(list string) error {
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" || strings.ContainsAny(s, "/:* ") && net.ParseIP(s) == nil {
			return tapedeck.Errorf(tapedeck.Invalid, "a host is written as deck.example or 10.1.2.3, without a port, not %q", s)
		}
		*h = append(*h, s)
	}
	return nil
}

func (h *hosts) String() string { return strings.Join(*h, ",") }
func (h *hosts) Type() string   { return "strings" }

// clientOptions returns the options of the clients of this program: its token.
func clientOptions() []client.Option {
	if token := strings.TrimSpace(os.Getenv(tokenVariable)); token != "" {
		return []client.Option{client.WithToken(token)}
	}
	return nil
}
