package tapedeck

import (
	"bytes"
	"encoding/json"
	"time"
)

// A stamp is a time that is encoded as in events: always with milliseconds, so
// that times can be compared as text.
type stamp time.Time

// MarshalJSON implements json.Marshaler.
func (t stamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"`+timeLayout+`"`), nil
}

// IsZero makes omitzero work for a stamp.
func (t stamp) IsZero() bool { return time.Time(t).IsZero() }

// MarshalJSON encodes the entry. The fields before plain replace those of the
// same name in plain.
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

// MarshalJSON encodes the run with its time as a stamp.
func (r OpenRun) MarshalJSON() ([]byte, error) {
	type plain OpenRun
	return asGiven(struct {
		Invocation string `json:"invocation"`
		Thread     string `json:"thread"`
		Offset     int64  `json:"offset"`
		Started    stamp  `json:"started_at"`
		plain
	}{r.Invocation, r.Thread, r.Offset, stamp(r.Started), plain(r)})
}

// MarshalJSON encodes the question with its time as a stamp.
func (q OpenQuestion) MarshalJSON() ([]byte, error) {
	type plain OpenQuestion
	return asGiven(struct {
		plain
		Asked stamp `json:"asked_at"`
	}{plain(q), stamp(q.Asked)})
}

// asGiven encodes v without escaping <, > and &; the calling encoder may escape
// them.
func asGiven(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
