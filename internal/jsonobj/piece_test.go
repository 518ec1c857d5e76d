package jsonobj

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// units returns a JSON string that has UTF-16 units as JavaScript writes them: a half that
// is alone is an escape.
func units(u []uint16) []byte {
	b := []byte{'"'}
	for i := 0; i < len(u); i++ {
		r := rune(u[i])
		if utf16.IsSurrogate(r) {
			whole := utf8.RuneError
			if i+1 < len(u) {
				whole = utf16.DecodeRune(r, rune(u[i+1]))
			}
			if whole == utf8.RuneError {
				b = append(b, `\u`...)
				for shift := 12; shift >= 0; shift -= 4 {
					b = append(b, "0123456789abcdef"[r>>shift&15])
				}
				continue
			}
			r, i = whole, i+1
		}
		b = appendInside(b, string(r))
	}
	return append(b, '"')
}

func pieceOf(t *testing.T, raw []byte) Piece {
	t.Helper()
	var p Piece
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return p
}

// FuzzPiecesOfText cuts any UTF-16 text at any places, and checks that its pieces make the
// text again, in each form that a piece can take meanwhile.
func FuzzPiecesOfText(f *testing.F) {
	for _, s := range []string{
		"", "go 🚀 on", "🚀🚀", "é界\u2028<&>\x00\x7f\b\f\"\\", "\ufffd🚀\ufffd",
	} {
		f.Add(s, []byte{}, uint64(0b101101))
	}
	f.Add("go ", []byte{0xd8, 0x3d}, uint64(0))                                     // alone
	f.Add("", []byte{0xde, 0x80, 0xd8, 0x3d}, uint64(1))                            // reversed
	f.Add("", []byte{0xd8, 0x3d, 0xd8, 0x3d, 0xde, 0x80, 0, 'x'}, uint64(0b1111))   // three
	f.Add("", []byte{0xd8, 0x3d, 0xde, 0x80, 0xde, 0x80, 0xd8, 0}, uint64(0b11111)) // three
	f.Fuzz(func(t *testing.T, s string, more []byte, cuts uint64) {
		u := utf16.Encode([]rune(s))
		for i := 0; i+1 < len(more); i += 2 {
			u = append(u, uint16(more[i])<<8|uint16(more[i+1]))
		}
		want := string(utf16.Decode(u)) // U+FFFD for a half that is alone
		var joined, twice, shown strings.Builder
		var halves Halves
		for from := 0; from < len(u); {
			to := from + 1
			for to < len(u) && cuts>>(to%64)&1 == 0 {
				to++
			}
			p := pieceOf(t, units(u[from:to]))
			joined.WriteString(string(p))
			again, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			twice.WriteString(string(pieceOf(t, AppendPiece(nil, pieceOf(t, again)))))
			next := halves.Next(p)
			if !utf8.ValidString(next) {
				t.Fatalf("%q is shown", next)
			}
			shown.WriteString(next)
			from = to
		}
		shown.WriteString(halves.End())
		for how, got := range map[string]string{
			"joined": Whole(joined.String()), "encoded meanwhile": Whole(twice.String()), "shown": shown.String(), "at once": pieceOf(t, units(u)).Whole(),
		} {
			if got != want {
				t.Errorf("%s: %q, want %q", how, got, want)
			}
		}
		if strings.Contains(want, "\ufffd") {
			return
		}
		if p, q := Piece(joined.String()), Piece(want); !bytes.Equal(marshal(t, p), marshal(t, q)) || !bytes.Equal(AppendPiece(nil, p), AppendJSON(nil, want)) {
			t.Errorf("%q is encoded as %s", joined.String(), marshal(t, p))
		}
	})
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzPiece compares a piece with the strings of encoding/json: the two differ in halves
// only.
func FuzzPiece(f *testing.F) {
	for _, s := range []string{
		`""`, `"a"`, `"\ud83d"`, `"\uDE80 on"`, `"\ud83d\ud83d\ude80"`, `"\ude80\ud83d"`, `"\ud83d\u0041"`, `"\ud83dx"`, `"\ud83d\n"`, `"\\ud83d"`, `"\u00e9\/\b\f\n\r\t\"\\"`,
		"\"\xed\xa0\xbd\xed\xba\x80\"", "\"\xed\xa0\"", "\"\xff\\ud83d\"", `"\u12"`, `"\x"`, `"\`, `"`, "\"\n\"", `null`, `1`, ` "a" `, "\"\u2028<&>\x7f\"", `"\u0000"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, q := Piece("before"), "before"
		err, want := json.Unmarshal(raw, &p), json.Unmarshal(raw, &q)
		if (err == nil) != (want == nil) || p.Whole() != q {
			t.Fatalf("%q is read as %q, %v; want %q, %v", raw, p, err, q, want)
		}
		if direct := Piece("before"); direct.UnmarshalJSON(raw) == nil && (!json.Valid(raw) || direct != p) {
			t.Fatalf("%q is read as %q, without its decoder as %q", raw, p, direct)
		}
		for _, html := range []bool{true, false} {
			var got, want bytes.Buffer
			for b, v := range map[*bytes.Buffer]any{&got: p, &want: q} {
				e := json.NewEncoder(b)
				e.SetEscapeHTML(html)
				if err := e.Encode(v); err != nil {
					t.Fatal(err)
				}
			}
			if string(p) == q && got.String() != want.String() {
				t.Fatalf("%q is encoded as %s, want %s", q, &got, &want)
			}
			if back := pieceOf(t, got.Bytes()); back != Piece(resolve(string(p), false, nil)) {
				t.Fatalf("%q came back as %q", p, back)
			}
		}
		if back := pieceOf(t, AppendPiece(nil, p)); back != Piece(resolve(string(p), false, nil)) {
			t.Fatalf("%q came back as %q", p, back)
		}
	})
}

// TestPiecesOfBytes has bytes that are no UTF-8 and no half: they stay for the encoder, which
// makes U+FFFD of them.
func TestPiecesOfBytes(t *testing.T) {
	for in, want := range map[string]string{
		"a\xed": "a\xed", "\xed\xa0": "\xed\xa0", "\xed\x9f\xbf": "\ud7ff", "\xed\xa0\xbd": "\ufffd", "\xed\xba\x80\xed\xa0\xbd": "\ufffd\ufffd",
		"\xed\xa0\xbd\xed\xa0\xbd\xed\xba\x80": "\ufffd🚀", "\xed\xa0\xbd\xed\xba\x80\xed\xba\x80": "🚀\ufffd", "\xed\xed\xa0\xbd\xed\xba\x80": "\xed🚀",
	} {
		if got := Whole(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := string(marshal(t, Piece("\xff\xed\xa0\xed\xa0\xbdx"))); got != `"\ufffd\ufffd\ufffd\ud83dx"` {
		t.Error(got)
	}
	if got := string(AppendPiece(nil, "\xff<\xed\xa0\xbd>")); got != `"\ufffd<\ud83d>"` {
		t.Error(got)
	}
}
