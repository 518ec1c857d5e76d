package subscription

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// A notification is the body of a webhook.
type notification struct {
	Subscription  string       `json:"subscription_id"`
	Wake          string       `json:"wake_id"`
	Generation    int64        `json:"generation"`
	Streams       []streamInfo `json:"streams"`
	CallbackURL   string       `json:"callback_url"`
	CallbackToken string       `json:"callback_token"`
}

// encodeAnnouncement returns the message of a wake in a wake stream.
func encodeAnnouncement(id, path string, generation int64, now time.Time) []byte {
	b, _ := json.Marshal(struct { // text and numbers can be encoded
		Type         string `json:"type"`
		Subscription string `json:"subscription_id"`
		Stream       string `json:"stream"`
		Generation   int64  `json:"generation"`
		Time         int64  `json:"ts"`
	}{"wake", id, path, generation, now.UnixMilli()})
	return b
}

// A described is a subscription as its readers see it.
type described struct {
	ID           string            `json:"id"`
	Subscription string            `json:"subscription_id"`
	Type         string            `json:"type"`
	Pattern      string            `json:"pattern,omitempty"`
	Filter       string            `json:"filter,omitempty"`
	Streams      []describedStream `json:"streams,omitzero"` // nil in a list
	More         int               `json:"streams_left_out,omitempty"`
	Webhook      *describedWebhook `json:"webhook,omitempty"`
	WakeStream   string            `json:"wake_stream,omitempty"`
	Lease        int64             `json:"lease_ttl_ms"`
	Created      time.Time         `json:"created_at"`
	Status       string            `json:"status"`
	Generation   int64             `json:"generation"`
	Failures     int               `json:"failures,omitempty"`
	NextAttempt  time.Time         `json:"next_attempt_at,omitzero"`
	LastError    string            `json:"last_error,omitempty"`
	Description  string            `json:"description,omitempty"`
}

type describedStream struct {
	Path  string `json:"path"`
	Type  string `json:"link_type"`
	Acked string `json:"acked_offset"`
}

type describedWebhook struct {
	URL     string  `json:"url"`
	Signing signing `json:"signing"`
}

type signing struct {
	Algorithm string `json:"alg"`
	Key       string `json:"kid"`
	JWKS      string `json:"jwks_url"`
}

// maxDescribed is how many streams the description of a subscription lists.
const maxDescribed = 10_000

// describe returns a subscription without its streams. base is the URL at which the
// reader reaches the server.
func (s *subscriber) describe(base string) (*described, error) {
	s.mu.Lock()
	st := s.state
	s.mu.Unlock()
	c := &st.Config
	out := &described{
		ID: s.id, Subscription: s.id, Type: c.Type, Pattern: c.Pattern, Filter: c.Filter, Streams: []describedStream{},
		WakeStream: c.WakeStream, Lease: c.Lease.Milliseconds(), Created: st.Created, Status: "active", Generation: st.Generation,
		Failures: st.Failures, LastError: st.LastError, Description: c.Description,
	}
	if st.Failures > 0 {
		out.Status, out.NextAttempt = "failed", st.Next.UTC().Truncate(time.Millisecond)
	}
	if c.Type == typeWebhook {
		k, err := s.d.keys.active()
		if err != nil {
			return nil, err
		}
		out.Webhook = &describedWebhook{c.URL, signing{"ed25519", k.ID, base + root + "/jwks.json"}}
	}
	return out, nil
}

// describeAll is describe with the streams.
func (s *subscriber) describeAll(ctx context.Context, base string) (*described, error) {
	out, err := s.describe(base)
	if err != nil {
		return nil, err
	}
	if out.Streams, err = s.streams(ctx); err != nil {
		return nil, err
	}
	if n := len(out.Streams) - maxDescribed; n > 0 {
		out.Streams, out.More = out.Streams[:maxDescribed], n
	}
	return out, nil
}

// streams returns what the subscription watches: the explicit streams, and those of the
// pattern of which something was acknowledged or is pending.
func (s *subscriber) streams(ctx context.Context) ([]describedStream, error) {
	acked := map[string]string{}
	err := s.d.options.Store.Acks(ctx, s.id, func(session string, gen, at int64) { acked[pathOfID(session)] = positionOf(gen, at) })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.pending {
		acked[l.path] = positionOf(l.gen, l.acked)
	}
	for p := range s.explicit {
		if _, ok := acked[p]; !ok {
			acked[p] = position(0)
		}
	}
	out := make([]describedStream, 0, len(acked))
	for p, at := range acked {
		if s.explicit[p] || s.matches(p) {
			out = append(out, describedStream{p, s.linkType(p), at})
		}
	}
	slices.SortFunc(out, func(a, b describedStream) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Path, b.Path)) // explicit before glob
	})
	return out, nil
}

// A jwk is a public key.
type jwk struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	X         string `json:"x"`
}

func encodeKeys(keys []key) []jwk {
	out := make([]jwk, len(keys))
	for i := range keys {
		out[i] = jwk{"OKP", "Ed25519", keys[i].ID, "sig", "EdDSA", keys[i].public()}
	}
	return out
}
