package payload_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

func TestElementThread(t *testing.T) {
	for element, want := range map[string]string{
		"element_4": "thread_element_4", "a.b-c": "thread_a.b-c", "Prüfung": "thread_Pr@c3@bcfung", "a b": "thread_a@20b", "a@b": "thread_a@40b",
	} {
		if got, err := payload.ElementThread(element); got != want || err != nil {
			t.Errorf("%q: %q %v", element, got, err)
		}
	}
	for _, element := range []string{"", strings.Repeat("x", 122), strings.Repeat("ü", 21)} {
		if got, err := payload.ElementThread(element); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%q: %q %v", element, got, err)
		}
	}
	for thread, want := range map[string]string{"main": "", "thread_": "", "thread_a@b": "a@b", "thread_a@zz": "a@zz", "thread_a@": "a@"} {
		if got, ok := payload.ElementOf(thread); got != want || ok != (want != "") {
			t.Errorf("%q: %q %t", thread, got, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		element := rapid.String().Draw(t, "element")
		thread, err := payload.ElementThread(element)
		if err != nil {
			return
		}
		if got, ok := payload.ElementOf(thread); !ok || got != element || tapedeck.CheckID("the thread", thread) != nil {
			t.Errorf("%q: %q, back %q", element, thread, got)
		}
	})
}
