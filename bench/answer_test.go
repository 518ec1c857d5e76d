package main

import (
	"fmt"
	"strings"
	"testing"
)

// wholeAnswers has complete answers: each ends with its last byte.
var wholeAnswers = map[string]string{
	"no content":    "HTTP/1.1 204 No Content\r\nDate: today\r\n\r\n",
	"no headers":    "HTTP/1.1 204 No Content\r\n\r\n",
	"a length":      "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
	"length 0":      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"chunks":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n",
	"an empty body": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}

func TestAnswerIsWholeWithItsLastByte(t *testing.T) {
	for name, whole := range wholeAnswers {
		for _, piece := range []int{1, 2, 7, len(whole)} {
			t.Run(fmt.Sprint(name, " in pieces of ", piece), func(t *testing.T) {
				var a answer
				for i := 0; i < len(whole); i += piece {
					done, err := a.add([]byte(whole[i:min(len(whole), i+piece)]))
					if err != nil {
						t.Fatal(err)
					}
					if last := i+piece >= len(whole); done != last {
						t.Fatalf("after %q it is complete: %v", whole[:min(len(whole), i+piece)], done)
					}
				}
			})
		}
	}
}

func TestAnswerThatIsWrongIsAnError(t *testing.T) {
	for _, bad := range []string{
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 twohundred\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxyz",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcd",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("x", maxAnswer),
	} {
		var a answer
		if done, err := a.add([]byte(bad)); err == nil {
			t.Errorf("%.80q is no error (complete: %v)", bad, done)
		}
	}
}
