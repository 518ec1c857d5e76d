package narrate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/tapedeck/tapedeck/internal/secret"
)

// Unreached returns why a request for another server had no answer, as the end of a sentence.
// It leaves out the URL, whose path may be a secret, and the secrets of the request.
func Unreached(err error, w *secret.Words) string {
	for u := (*url.Error)(nil); errors.As(err, &u); {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return "its proxy does not answer: " + Unreached(op.Err, w)
	}
	if s := brokenTLS(err, w); s != "" {
		return s
	}
	var timed interface{ Timeout() bool }
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "there is no host of this name"
	case errors.As(err, &dns):
		return "its name cannot be looked up now"
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timed) && timed.Timeout():
		return "it does not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused, so nothing listens at its port"
	case errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH):
		return "no network leads to it"
	case errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends the connection without an answer"
	}
	return Brief(err.Error(), w)
}

// brokenTLS returns what is wrong with the TLS of a server, "" if it is something else.
func brokenTLS(err error, w *secret.Words) string {
	var name x509.HostnameError
	var signer x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	var alert *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record):
		return "it does not speak TLS at this port; maybe its URL begins with http://"
	case errors.As(err, &name):
		return "its certificate is for another name"
	case errors.As(err, &signer):
		return "nobody whom this machine trusts has signed its certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is not valid at this time"
	case errors.As(err, &unverified) || errors.As(err, &invalid):
		return "its certificate is not valid"
	case errors.As(err, &alert) && alert.Op == "remote error": // as crypto/tls calls an alert
		return "it refuses to speak TLS: " + Brief(alert.Err.Error(), w)
	}
	return ""
}
