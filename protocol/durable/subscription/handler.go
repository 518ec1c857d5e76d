package subscription

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/webhook"
)

// root is the path of the requests for subscriptions.
const root = "/v1/stream/__ds"

// ServeHTTP implements http.Handler. It expects the whole path.
func (d *Dispatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := d.serve(w, r); err != nil {
		d.fail(w, r, err)
	}
}

func (d *Dispatcher) serve(w http.ResponseWriter, r *http.Request) error {
	path := strings.TrimPrefix(r.URL.Path, root)
	switch rest, ok := strings.CutPrefix(path, "/subscriptions/"); {
	case path == "/jwks.json":
		return d.serveKeys(w, r)
	case path == "/subscriptions":
		return d.serveList(w, r)
	case ok:
		id, action, _ := strings.Cut(rest, "/")
		return d.serveAction(w, r, id, action)
	}
	return errNothing(r)
}

func errNothing(r *http.Request) error {
	return failed(codeNotFound, "there is nothing at %.200q", r.URL.Path).hint("subscriptions are under %s/subscriptions/", root)
}

// notAllowed returns the error of another method than the allowed ones.
func notAllowed(w http.ResponseWriter, r *http.Request, allowed ...string) error {
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	return failed(codeMethod, "%.64q cannot be used on %.200s", r.Method, r.URL.Path).hint("this path allows %s", list)
}

func (d *Dispatcher) serveAction(w http.ResponseWriter, r *http.Request, id, action string) error {
	if path, ok := strings.CutPrefix(action, "streams/"); ok {
		if r.Method != http.MethodDelete {
			return notAllowed(w, r, http.MethodDelete)
		}
		return noContent(w, d.removeStream(r.Context(), id, trim(path)))
	}
	var post func(w http.ResponseWriter, r *http.Request, id string) error
	switch action {
	case "":
		return d.serveSubscription(w, r, id)
	case "streams":
		post = d.postStreams
	case "claim":
		post = d.postClaim
	case "ack":
		post = func(w http.ResponseWriter, r *http.Request, id string) error {
			return d.postReport(w, r, id, typePullWake)
		}
	case "callback":
		post = func(w http.ResponseWriter, r *http.Request, id string) error {
			return d.postReport(w, r, id, typeWebhook)
		}
	case "release":
		post = d.postRelease
	default:
		return errNothing(r)
	}
	if r.Method != http.MethodPost {
		return notAllowed(w, r, http.MethodPost)
	}
	return post(w, r, id)
}

func (d *Dispatcher) serveSubscription(w http.ResponseWriter, r *http.Request, id string) error {
	switch r.Method {
	case http.MethodPut:
		return d.putSubscription(w, r, id)
	case http.MethodGet:
		return d.getSubscription(w, r, id)
	case http.MethodDelete:
		return noContent(w, d.drop(r.Context(), id))
	}
	return notAllowed(w, r, http.MethodGet, http.MethodPut, http.MethodDelete)
}

func (d *Dispatcher) putSubscription(w http.ResponseWriter, r *http.Request, id string) error {
	var body request
	if err := decode(w, r, &body); err != nil {
		return err
	}
	base, err := d.base(r)
	if err != nil {
		return err
	}
	s, made, err := d.put(r.Context(), id, body.config(), base)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
		w.Header().Set("Location", base+root+"/subscriptions/"+id)
	}
	return d.answer(w, r, s, base, status)
}

func (d *Dispatcher) getSubscription(w http.ResponseWriter, r *http.Request, id string) error {
	s, err := d.find(r.Context(), id)
	if err != nil {
		return err
	}
	base, err := d.base(r)
	if err != nil {
		return err
	}
	return d.answer(w, r, s, base, http.StatusOK)
}

// answer answers with a subscription.
func (d *Dispatcher) answer(w http.ResponseWriter, r *http.Request, s *subscriber, base string, status int) error {
	out, err := s.describeAll(r.Context(), base)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, status, out)
	return nil
}

// serveList answers with all subscriptions, without their streams. This is an extension
// of the protocol.
func (d *Dispatcher) serveList(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return notAllowed(w, r, http.MethodGet)
	}
	base, err := d.base(r)
	if err == nil {
		err = d.await(r.Context())
	}
	if err != nil {
		return err
	}
	list := []*described{}
	for _, s := range d.all() {
		out, err := s.describe(base)
		if err != nil {
			return err
		}
		out.Streams = nil
		list = append(list, out)
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, map[string]any{"subscriptions": list})
	return nil
}

func (d *Dispatcher) serveKeys(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return notAllowed(w, r, http.MethodGet)
	}
	if _, err := d.keys.active(); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/jwk-set+json")
	h.Set("Cache-Control", "public, max-age=300")
	writeJSON(w, http.StatusOK, map[string]any{"keys": encodeKeys(d.keys.all())})
	return nil
}

func (d *Dispatcher) postStreams(w http.ResponseWriter, r *http.Request, id string) error {
	var body struct {
		Streams []string `json:"streams"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	paths := trimAll(body.Streams)
	if len(paths) == 0 {
		return invalid("streams is not a list of paths")
	}
	return noContent(w, d.addStreams(r.Context(), id, paths))
}

func (d *Dispatcher) postClaim(w http.ResponseWriter, r *http.Request, id string) error {
	var body struct {
		Worker string `json:"worker"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	out, err := d.claim(r.Context(), id, body.Worker)
	if err == nil {
		writeJSON(w, http.StatusOK, out)
	}
	return err
}

func (d *Dispatcher) postReport(w http.ResponseWriter, r *http.Request, id, kind string) error {
	token, err := bearer(r)
	if err != nil {
		return err
	}
	var body report
	if err := decode(w, r, &body); err != nil {
		return err
	}
	more, err := d.report(r.Context(), id, kind, token, &body)
	if err == nil {
		writeJSON(w, http.StatusOK, map[string]bool{"ok": true, "next_wake": more})
	}
	return err
}

func (d *Dispatcher) postRelease(w http.ResponseWriter, r *http.Request, id string) error {
	token, err := bearer(r)
	if err != nil {
		return err
	}
	var body report
	if err := decode(w, r, &body); err != nil {
		return err
	}
	return noContent(w, d.release(r.Context(), id, token, &body))
}

// noContent answers a request whose only result is whether it succeeded.
func noContent(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// base returns the URL at which clients reach the server.
func (d *Dispatcher) base(r *http.Request) (string, error) {
	if d.options.PublicURL != "" {
		return d.options.PublicURL, nil
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(scheme + "://" + r.Host)
	if err != nil || u.Host != r.Host || !webhook.IsHost(u.Hostname()) || u.User != nil {
		return "", invalid("the Host header is not valid")
	}
	return scheme + "://" + r.Host, nil
}

// PublicURL returns a URL for [Options.PublicURL]. The error says what is wrong with it.
func PublicURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !webhook.IsHost(u.Hostname()) || !webhook.IsPort(u.Port()) ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return "", tapedeck.Errorf(tapedeck.Invalid, "the public URL is written as https://deck.example, not %.200q", s)
	}
	return u.Scheme + "://" + u.Host, nil
}
