package rest_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/internal/apitest"
)

// watch opens a stream, see [apitest.Watch].
func watch(t testing.TB, h http.Handler, target string, headers ...string) *apitest.Client {
	t.Helper()
	return apitest.Watch(t, h, target, headers...)
}

// offsets returns the ids of the events that a client has received.
func offsets(t testing.TB, c *apitest.Client) []int64 {
	t.Helper()
	var list []int64
	for _, f := range c.Frames(t) {
		if f.Event == "" {
			offset, life, _ := strings.Cut(f.ID, "@")
			if number(t, life) == 0 {
				t.Errorf("the id %q has no incarnation", f.ID)
			}
			list = append(list, number(t, offset))
		}
	}
	return list
}

// incarnation is what ids and cursors have of the first session of a store;
// TestIncarnation looks at it.
var incarnation = regexp.MustCompile(`,"cursor":"\d+@1"|@1`)

// notes returns the frames with an event name, such as caught-up, without the incarnation.
func notes(t testing.TB, c *apitest.Client) string {
	t.Helper()
	var b strings.Builder
	for _, f := range c.Frames(t) {
		if f.Event != "" {
			b.WriteString(f.ID + f.Event + string(f.Data) + " ")
		}
	}
	return incarnation.ReplaceAllString(strings.TrimSpace(b.String()), "")
}

func number(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// count returns the numbers from a up to b, without b.
func count(a, b int64) []int64 {
	var list []int64
	for ; a < b; a++ {
		list = append(list, a)
	}
	return list
}
