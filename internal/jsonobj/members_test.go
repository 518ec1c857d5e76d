package jsonobj

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzObject compares the reader of members with encoding/json.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : 1 , "b":[{"c":"]}\\"}],"\u0061":null} `, `{"a":"\\","b":-1.5e+3,"c":true}`, `{"a":1,}`, `{"a" 1}`, `{,}`, `{"a":}`,
		`{"a":1}x`, `[`, `"`, `{"a":"`, `{"a":1 "b":2}`, `{"":""}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]string{}
		o := Read(b)
		for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
			if len(raw) == 0 {
				t.Fatalf("%q has an empty value", name)
			}
			got[string(name)] = string(raw)
		}
		var want map[string]json.RawMessage
		if len(b) == 0 || json.Unmarshal(b, &want) != nil || want == nil {
			return // the reader may stop anywhere in invalid JSON
		}
		if o.Bad || len(got) != len(want) && utf8.Valid(b) {
			t.Fatalf("%q is read as %q", b, got)
		}
		for name, raw := range want {
			if utf8.Valid(b) && got[name] != string(bytes.TrimSpace(raw)) {
				t.Fatalf("in %q, %q is %q", b, name, got[name])
			}
		}
	})
}

func TestObjectOfBadJSON(t *testing.T) {
	for _, in := range []string{
		`{`, `[]`, `x`, ` `, `{"a":1`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}{`, `{"a":1 "b":2}`, `{a:1}`, `{"a":"}`, `{"a":[}`, `{"a":{"b":"c}`, `{"\x":1}`, `{1:2}`, `{,"a":1}`,
	} {
		o := Read([]byte(in))
		for _, _, ok := o.Next(); ok; _, _, ok = o.Next() {
		}
		if !o.Bad {
			t.Errorf("%s is read as an object", in)
		}
		if _, _, ok := o.Next(); ok {
			t.Errorf("%s goes on after its end", in)
		}
	}
	if o := Read(nil); o.Bad {
		t.Error("no data is not an object without members")
	}
}

func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\b\x00\x7f", "é界\u2028", "\xff\xc3", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendJSON([]byte("x"), s)
		var got string
		if err := json.Unmarshal(b[1:], &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Fatalf("%q became %s: %v", s, b, err)
		}
		if !utf8.Valid(b) || bytes.ContainsAny(b, "\r\n") || b[0] != 'x' {
			t.Fatalf("%q became %q", s, b)
		}
		if utf8.ValidString(s) && (!StringIs(b[1:], s) || StringOf(b[1:]) != s || StringSize(b[1:]) != int64(len(s))) {
			t.Fatalf("%s is not read as %q", b, s)
		}
	})
}

func FuzzAppendTime(f *testing.F) {
	for _, ms := range []int64{0, -1, 1705848000123, 253402300799999, 253402300800000, -62135596800000, -99999999999999} {
		f.Add(ms)
	}
	f.Fuzz(func(t *testing.T, ms int64) {
		at := time.UnixMilli(ms)
		if got, want := string(AppendTime(nil, at)), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%d is written as %s, not %s", ms, got, want)
		}
	})
}

func TestWithMember(t *testing.T) {
	for in, want := range map[string]string{
		``:                  `{"a":"b"}`,
		`{}`:                `{"a":"b"}`,
		" { \n} ":           `{"a":"b"}`,
		`{"x":1}`:           `{"x":1,"a":"b"}`,
		" {\"x\": \"}\" } ": `{"x": "}" ,"a":"b"}`,
		`[]`:                `[]`,
		`{"x":`:             `{"x":`,
	} {
		if got := string(WithMember([]byte(in), "a", "b")); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":                      `""`,
		"a\n\"":                 `"a\n\""`,
		strings.Repeat("x", 64): `"` + strings.Repeat("x", 64) + `"`,
		strings.Repeat("x", 65): `"` + strings.Repeat("x", 64) + `…"`,
		strings.Repeat("界", 30): `"` + strings.Repeat("界", 21) + `…"`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("%q is shown as %s", in, got)
		}
	}
}
