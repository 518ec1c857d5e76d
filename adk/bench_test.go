package adk_test

import (
	"fmt"
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/tapedeck/tapedeck/adk"
)

// BenchmarkAppendEvent appends a text to a session on a disk.
func BenchmarkAppendEvent(b *testing.B) {
	s := adk.NewService(open(b, b.TempDir()), adk.Options{})
	made, err := s.Create(b.Context(), &session.CreateRequest{AppName: "app", UserID: "ada"})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n++
		if err := s.AppendEvent(b.Context(), made.Session, at(n, "user", text("How is the weather in Bern?"))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGet gets a session of 1,000 questions with answers.
func BenchmarkGet(b *testing.B) {
	s := adk.NewService(open(b, b.TempDir()), adk.Options{})
	made, err := s.Create(b.Context(), &session.CreateRequest{AppName: "app", UserID: "ada", SessionID: "s1"})
	if err != nil {
		b.Fatal(err)
	}
	for n := range 1000 {
		for _, author := range []string{"user", "bot"} {
			e := at(n, author, text("It rains in Bern, and it will rain tomorrow."))
			e.InvocationID = fmt.Sprint("inv", n)
			if err := s.AppendEvent(b.Context(), made.Session, e); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if _, err := s.Get(b.Context(), &session.GetRequest{AppName: "app", UserID: "ada", SessionID: "s1"}); err != nil {
			b.Fatal(err)
		}
	}
}
