package bpmn_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// wide returns a text in UTF-16, after its byte order mark.
func wide(order binary.AppendByteOrder, text string) []byte {
	var out []byte
	for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

// TestEncodings: a file means the same in each encoding of the tools, with and without a
// mark, and its text is UTF-8.
func TestEncodings(t *testing.T) {
	file := func(encoding string) string {
		first := ""
		if encoding != "" {
			first = `<?xml version="1.0" encoding="` + encoding + `"?>` + "\n"
		}
		return first + headElement + "\n" + `<extension definition="x:Rule"/><extension definition="zeebe:taskDefinition" mustUnderstand="true"/>
<process id="p" name="Größe" isExecutable="true"><startEvent id="a"/></process></definitions>`
	}
	latin := strings.NewReplacer("ö", "\xf6", "ß", "\xdf")
	const mark = "\xef\xbb\xbf"
	for name, c := range map[string]struct {
		file []byte
		text string
	}{
		"UTF-8":                         {[]byte(file("UTF-8")), file("UTF-8")},
		"UTF-8 with a mark":             {[]byte(mark + file("utf-8")), file("utf-8")},
		"a mark and no name":            {[]byte(mark + file("")), file("")},
		"a mark and a wrong name":       {[]byte(mark + file("ISO-8859-1")), file("UTF-8")},
		"UTF-16LE":                      {wide(binary.LittleEndian, file("UTF-16")), file("UTF-8")},
		"UTF-16BE":                      {wide(binary.BigEndian, file("utf-16")), file("UTF-8")},
		"UTF-16 that a program decoded": {[]byte(file("UTF-16")), file("UTF-8")},
		"ISO-8859-1":                    {[]byte(latin.Replace(file("ISO-8859-1"))), file("UTF-8")},
		"Latin that a program decoded":  {[]byte(file("windows-1252")), file("UTF-8")},
	} {
		if got := string(bpmn.UTF8(c.file)); got != c.text {
			t.Errorf("%s: the text is %.80q", name, got)
		}
		d, err := bpmn.Read(bytes.NewReader(c.file), bpmn.Options{})
		if err != nil {
			t.Errorf("%s: %s", name, problems(err))
			continue
		}
		same(t, name, d.Main.Name, "Größe")
		same(t, name, d.Digest, bpmn.DigestOf([]byte(c.text)))
	}
}
