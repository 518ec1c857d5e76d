package quota_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/quota"
)

var ada = quota.Key{Subject: "ada", Role: access.User}

func book(l quota.Limits) *quota.Book { return quota.New(func(quota.Key) quota.Limits { return l }) }

// TestRate: a subject sends on average what it may, at once what it may in ten seconds, and
// is told how long it waits. A request that is larger than that is carried out once.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := book(quota.Limits{Events: 5, Bytes: 1000})
		taken := func() (n int) {
			for b.Take(ada, 1, 1) == nil {
				n++
			}
			return n
		}
		if n := taken(); n != 50 {
			t.Errorf("at once: %d events", n)
		}
		time.Sleep(2 * time.Second)
		if n := taken(); n != 10 {
			t.Errorf("after two seconds: %d events", n)
		}
		time.Sleep(time.Hour)
		if n := taken(); n != 50 {
			t.Errorf("after an hour: %d events", n)
		}
		other := quota.Key{Subject: "bob", Role: access.User}
		if err := b.Take(other, 1, 60_000); err != nil {
			t.Errorf("a large request: %v", err)
		}
		err := b.Take(other, 1, 1)
		e, ok := err.(*tapedeck.Error)
		if !ok || e.Kind != tapedeck.Limited || e.After != 50*time.Second || !strings.Contains(e.Hint, "50s") {
			t.Fatalf("after a large request: %+v", err)
		}
		time.Sleep(e.After - time.Second)
		if b.Take(other, 1, 1) == nil {
			t.Error("it need not wait as long as it was told")
		}
		time.Sleep(time.Second + time.Millisecond)
		if err := b.Take(other, 1, 1); err != nil {
			t.Errorf("after it has waited: %v", err)
		}
		b.Charge(other, 100, 0)
		if b.Take(other, 1, 1) == nil {
			t.Error("what was charged does not count")
		}
	})
}

// TestStreams: as many streams are open as are allowed, and each can be closed once.
func TestStreams(t *testing.T) {
	b := book(quota.Limits{Streams: 2})
	first, err := b.Open(ada)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(ada); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(ada); tapedeck.KindOf(err) != tapedeck.Limited {
		t.Errorf("a third one: %v", err)
	}
	if _, err := b.Open(quota.Key{Subject: "ada", Role: access.Reader}); err != nil {
		t.Errorf("in another role: %v", err)
	}
	first()
	if _, err := b.Open(ada); err != nil || b.Streams(ada) != 2 {
		t.Errorf("after one was closed: %v, %d", err, b.Streams(ada))
	}
}

// TestAccountsAreBounded: many subjects cost a limited memory, and those with open streams
// are not dropped.
func TestAccountsAreBounded(t *testing.T) {
	b := book(quota.Limits{Streams: 1, Events: 1})
	if _, err := b.Open(ada); err != nil {
		t.Fatal(err)
	}
	for n := range 30_000 {
		if err := b.Take(quota.Key{Subject: "s" + strconv.Itoa(n)}, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.Accounts(); n > 10_000 || b.Streams(ada) != 1 {
		t.Errorf("%d accounts, and ada has %d streams", n, b.Streams(ada))
	}
	free := book(quota.Limits{})
	for range 3 {
		if err := free.Take(ada, 1000, 1000); err != nil {
			t.Error(err)
		}
		if _, err := free.Open(ada); err != nil {
			t.Error(err)
		}
	}
	if free.Accounts() != 0 {
		t.Error("without limits there are accounts")
	}
}

// TestConfig: the limits of a subject go before those of its role, and these before the
// others, which are not for admins; what is wrong is named.
func TestConfig(t *testing.T) {
	read := func(text string) (*quota.Config, error) {
		var c quota.Config
		if _, err := toml.Decode(text, &c); err != nil {
			t.Fatal(err)
		}
		return &c, c.Check()
	}
	c, err := read(`sessions = 10
streams = 20
events_per_second = 30
bytes_per_second = 40
runs = 50
[role.reader]
streams = 2
[subject.ada]
runs = 5
sessions = 0
[subject.root]
runs = 7
`)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[quota.Key]quota.Limits{
		{Subject: "bob", Role: access.User}:   {Sessions: 10, Streams: 20, Events: 30, Bytes: 40, Runs: 50},
		ada:                                   {Sessions: 0, Streams: 20, Events: 30, Bytes: 40, Runs: 5},
		{Subject: "ada", Role: access.Reader}: {Sessions: 0, Streams: 2, Events: 30, Bytes: 40, Runs: 5},
		{Subject: "boss", Role: access.Admin}: {},
		{Subject: "root", Role: access.Admin}: {Runs: 7},
	} {
		if got := c.Of(k); got != want {
			t.Errorf("%+v: %+v, want %+v", k, got, want)
		}
	}
	if got := (*quota.Config)(nil).Of(ada); got != (quota.Limits{}) {
		t.Errorf("without a configuration: %+v", got)
	}
	for text, want := range map[string]string{
		"runs = -1": "quota: runs is a number", "[role.king]\nruns = 1": `no role "king"`, "[subject.\"a b\"]\nruns = 1": "quota: the subject", "[role.user]\nstreams = 9000000000000": "quota.role.user: streams",
	} {
		if _, err := read(text); tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
