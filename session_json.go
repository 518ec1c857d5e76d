package tapedeck

import (
	"bytes"
	"encoding/json"
	"time"
)

// A stamp is a time as events have it: always with milliseconds, so that times can
// be compared as text.
type stamp time.Time

// MarshalJSON implements json.Marshaler.
func (t stamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"`+timeLayout+`"`), nil
}

// IsZero says when the member is left out.
func (t stamp) IsZero() bool { return time.Time(t).IsZero() }

// MarshalJSON encodes the entry. The members before plain take the place of its
// own.
func (s Session) MarshalJSON() ([]byte, error) {
	type plain Session
	return asGiven(struct {
		ID      string      `json:"id"`
		Kind    SessionKind `json:"kind"`
		Created stamp       `json:"created_at"`
		Updated stamp       `json:"updated_at"`
		plain
		Expires stamp `json:"expires_at,omitzero"`
	}{s.ID, s.Kind, stamp(s.Created), stamp(s.Updated), plain(s), stamp(s.Expires)})
}

// MarshalJSON encodes the run.
func (r OpenRun) MarshalJSON() ([]byte, error) {
	return asGiven(struct {
		Invocation string `json:"invocation"`
		Thread     string `json:"thread"`
		Offset     int64  `json:"offset"`
		Started    stamp  `json:"started_at"`
		Owner      string `json:"owner,omitempty"`
		Parent     string `json:"parent,omitempty"`
	}{r.Invocation, r.Thread, r.Offset, stamp(r.Started), r.Owner, r.Parent})
}

// asGiven encodes v. Whether <, > and & are escaped is up to the encoder that asks.
func asGiven(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
