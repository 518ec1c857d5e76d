package subscription

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck/internal/webhook"
)

// Limits of a request to a webhook.
const (
	maxAttempt      = 30 * time.Second // from the connection to the end of the answer; less if the lease is shorter
	signatureHeader = "Webhook-Signature"
)

// send sends a body and reports whether the receiver is done with it.
func (d *Dispatcher) send(ctx context.Context, url string, body []byte, signature string) (done bool, err error) {
	header := http.Header{"Content-Type": {"application/json"}, signatureHeader: {signature}}
	answer, err := d.client.Post(ctx, url, header, body)
	return err == nil && saysDone(answer), err
}

// saysDone reports whether an answer says that the receiver is done. An answer that is no
// such JSON says that it is not.
func saysDone(answer []byte) bool {
	var a struct {
		Done bool `json:"done"`
	}
	return len(answer) <= webhook.MaxAnswer && json.Unmarshal(answer, &a) == nil && a.Done
}

// sign returns the value of the header that proves the origin of a body.
func sign(k *key, body []byte, now time.Time) string {
	t := strconv.FormatInt(now.Unix(), 10)
	signature := ed25519.Sign(k.private(), append([]byte(t+"."), body...))
	return "t=" + t + ",kid=" + k.ID + ",ed25519=" + base64.RawURLEncoding.EncodeToString(signature)
}

// deliver sends the wake to the webhook. Requires s.mu, which it releases meanwhile.
func (s *subscriber) deliver(ctx context.Context, streams []streamInfo, tails map[int64]int64) {
	wake := *s.state.Wake
	body, signature, err := s.envelope(&wake, streams)
	if err != nil {
		s.failed(ctx, webhook.Reason(err))
		return
	}
	s.mu.Unlock()
	attempt, cancel := context.WithTimeout(ctx, min(s.config.Lease, maxAttempt))
	done, err := s.d.send(attempt, s.config.URL, body, signature)
	cancel()
	s.mu.Lock()
	switch {
	case s.overtaken(ctx, wake.ID):
	case err != nil:
		s.failed(ctx, "the webhook failed: "+webhook.Reason(err))
	case !done:
		s.succeeded(ctx)
	default:
		s.done(ctx, tails)
	}
}

// envelope returns the body of a webhook and its signature.
func (s *subscriber) envelope(w *wake, streams []streamInfo) (body []byte, signature string, err error) {
	token, err := s.d.newToken(s.id, w, s.state.Generation)
	if err != nil {
		return nil, "", err
	}
	k, err := s.d.keys.active()
	if err != nil {
		return nil, "", err
	}
	body, err = json.Marshal(notification{
		Subscription: s.id, Wake: w.ID, Generation: s.state.Generation, Streams: streams,
		CallbackURL: s.state.Base + root + "/subscriptions/" + s.id + "/callback", CallbackToken: token,
	})
	return body, sign(&k, body, s.d.options.Now()), err
}

// done ends the wake and acknowledges what it told. Reports may have acknowledged more
// meanwhile.
func (s *subscriber) done(ctx context.Context, tails map[int64]int64) {
	maps.DeleteFunc(tails, func(gen, at int64) bool {
		l := s.pending[gen]
		return l == nil || l.acked >= at
	})
	apply, err := s.acknowledge(ctx, tails)
	if err == nil {
		next := s.state
		next.Wake, next.Failures, next.Next, next.LastError = nil, 0, time.Time{}, ""
		err = s.save(ctx, &next, tails)
	}
	if err != nil { // the receiver gets the wake again
		s.failed(ctx, webhook.Reason(err))
		return
	}
	apply()
}
