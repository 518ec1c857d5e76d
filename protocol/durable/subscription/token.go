package subscription

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// tokenLife is how long a token can be used. A lease that is extended for longer ends,
// and a new wake begins.
const tokenLife = 24 * time.Hour

// A claims is the content of a token: which wake its bearer works on.
type claims struct {
	Key          string `json:"kid"`
	Subscription string `json:"sub"`
	Wake         string `json:"wake"`
	Generation   int64  `json:"gen"`
	Expires      int64  `json:"exp"` // seconds since 1970
}

// newToken returns the token for a wake.
func (d *Dispatcher) newToken(subscription string, w *wake, generation int64) (string, error) {
	k, err := d.keys.active()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(claims{k.ID, subscription, w.ID, generation, d.options.Now().Add(tokenLife).Unix()})
	if err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString(b)
	return body + "." + base64.RawURLEncoding.EncodeToString(mac(&k, body)), nil
}

// checkToken returns the content of a token of a subscription.
func (d *Dispatcher) checkToken(subscription, token string) (claims, error) {
	var c claims
	wrong := failed(codeToken, "the token is not one of this subscription")
	body, sum, _ := strings.Cut(token, ".")
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(b, &c) != nil {
		return c, wrong
	}
	k, ok := d.keys.find(c.Key)
	got, err := base64.RawURLEncoding.DecodeString(sum)
	switch {
	case !ok || err != nil || !hmac.Equal(got, mac(&k, body)) || c.Subscription != subscription:
		return c, wrong
	case d.options.Now().Unix() > c.Expires:
		return c, failed(codeExpired, "the token has expired")
	}
	return c, nil
}

// mac authenticates the body of a token, with a secret that is derived from the key, so
// that no signature of a webhook can be used as a token.
func mac(k *key, body string) []byte {
	derive := hmac.New(sha256.New, k.Seed)
	derive.Write([]byte("token of a wake"))
	m := hmac.New(sha256.New, derive.Sum(nil))
	m.Write([]byte(body))
	return m.Sum(nil)
}

// IsWorker reports whether a request has the token of a wake, and is one that needs no
// other token: an acknowledgement, a callback or a release.
func (d *Dispatcher) IsWorker(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, root+"/subscriptions/")
	id, action, _ := strings.Cut(rest, "/")
	if !ok || r.Method != http.MethodPost || action != "ack" && action != "callback" && action != "release" {
		return false
	}
	token, err := bearer(r)
	if err != nil {
		return false
	}
	_, err = d.checkToken(id, token)
	return err == nil
}
