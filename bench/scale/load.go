package main

import (
	"errors"
	"flag"
	"fmt"
)

// A load is what an installation must carry.
type load struct {
	Sessions  float64 // new sessions a day
	Events    float64 // events of a session, on average
	Tokens    float64 // tokens a second of all agents together, at the peak
	Rate      float64 // tokens a second of one agent that speaks
	Followers float64 // open streams
	Watching  float64 // part of the followers whose session speaks at the moment
	Forks     float64 // part of the sessions that are forks
	Lists     float64 // requests a second for a list or a search
	Opens     float64 // sessions a second that somebody opens again, from their beginning
	Keep      float64 // days that a session is kept
}

// costs are what one server and one database can do. Those that are measured here say so;
// the others are assumptions.
type costs struct {
	DatabaseEvents float64 // events a second that one database stores
	ServerEvents   float64 // deliveries a second of one core of a server
	Pieces         float64 // events a second of a session that speaks, after coalescing
	TokenBytes     float64 // bytes of the database for one token
	EventBytes     float64 // bytes of the database for one event that is no text
	FollowerBytes  float64 // memory of a server for one follower
	ReplayEvents   float64 // events a second that one database reads for openings
	ListRequests   float64 // lists a second that one database answers
	ServerCores    float64
	ServerMemory   float64 // bytes for followers
	DatabaseDisk   float64 // bytes
	SealedPart     float64 // size of sealed events in the object store, as a part of their size in rows
	SealAfter      float64 // days until the events of a session that has ended are sealed; 0: never
	Immutable      float64 // part of the openings that a cache in front answers
	Full           float64 // how far something is filled at the peak
	PriceServer    float64 // dollars a month
	PriceDatabase  float64 // dollars a month, with its standby
	PriceDisk      float64 // dollars a month for a gigabyte, with its standby
	PriceObject    float64 // dollars a month for a gigabyte
}

// An input is one flag: its name, its default, and whether the default is measured.
type input struct {
	name     string
	to       *float64
	value    float64
	measured bool
	usage    string
}

func inputs(l *load, c *costs) []input {
	return []input{
		{"sessions", &l.Sessions, 10e6, false, "new sessions a day"},
		{"events", &l.Events, 60, false, "events of a session that are no pieces of text"},
		{"tokens", &l.Tokens, 100e3, false, "tokens a second at the peak"},
		{"rate", &l.Rate, 50, false, "tokens a second of one agent that speaks"},
		{"followers", &l.Followers, 1e6, false, "open streams at the peak"},
		{"watching", &l.Watching, 0.02, false, "part of the followers whose session speaks at the moment"},
		{"forks", &l.Forks, 0.05, false, "part of the sessions that are forks"},
		{"lists", &l.Lists, 500, false, "lists and searches a second"},
		{"opens", &l.Opens, 2000, false, "sessions a second that are opened from their beginning"},
		{"keep", &l.Keep, 90, false, "days that a session is kept"},
		{"database-events", &c.DatabaseEvents, 30e3, false, "events a second that one database stores with fsync, 64 writers"},
		{"server-events", &c.ServerEvents, 80e3, true, "deliveries a second of one core of a server"},
		{"pieces", &c.Pieces, 12, false, "events a second of a session that speaks, after coalescing"},
		{"token-bytes", &c.TokenBytes, 32, true, "bytes on the disk for a token"},
		{"event-bytes", &c.EventBytes, 420, false, "bytes on the disk for another event, with its index"},
		{"follower-bytes", &c.FollowerBytes, 28.2 * 1024, true, "memory for a follower"},
		{"replay-events", &c.ReplayEvents, 400e3, false, "events a second that one database reads"},
		{"list-requests", &c.ListRequests, 1500, false, "lists a second that one database answers"},
		{"server-cores", &c.ServerCores, 8, false, "cores of a server"},
		{"server-memory", &c.ServerMemory, 16e9, false, "bytes of a server for followers"},
		{"database-disk", &c.DatabaseDisk, 2e12, false, "bytes of the disk of a database"},
		{"sealed-part", &c.SealedPart, 0.26, false, "size of sealed events, as a part of their size in rows"},
		{"seal-after", &c.SealAfter, 3, false, "days until an ended session is sealed into the object store; 0: never"},
		{"immutable", &c.Immutable, 0.8, false, "part of the openings that a cache in front answers"},
		{"full", &c.Full, 0.6, false, "how far anything is filled at the peak"},
		{"price-server", &c.PriceServer, 250, false, "dollars a month for a server"},
		{"price-database", &c.PriceDatabase, 1400, false, "dollars a month for a database and its standby"},
		{"price-disk", &c.PriceDisk, 0.25, false, "dollars a month for a gigabyte, on both"},
		{"price-object", &c.PriceObject, 0.023, false, "dollars a month for a gigabyte in the object store"},
	}
}

func register(fs *flag.FlagSet, in []input) {
	for _, i := range in {
		fs.Float64Var(i.to, i.name, i.value, i.usage)
	}
}

// check returns an error that names the first input with an impossible value.
func check(in []input) error {
	parts := map[string]bool{"watching": true, "forks": true, "sealed-part": true, "immutable": true, "full": true}
	for _, i := range in {
		switch v := *i.to; {
		case !(v >= 0) || v > 1e18: // also NaN
			return fmt.Errorf("-%s must be a number from 0 on", i.name)
		case parts[i.name] && v > 1:
			return fmt.Errorf("-%s is a part: it must be between 0 and 1", i.name)
		case v == 0 && divisors[i.name]:
			return fmt.Errorf("-%s must be above 0", i.name)
		}
	}
	return nil
}

// divisors are the inputs that must not be 0.
var divisors = map[string]bool{
	"rate": true, "full": true, "database-events": true, "server-events": true, "replay-events": true,
	"list-requests": true, "server-cores": true, "server-memory": true, "database-disk": true,
}

var errDatabases = errors.New("-databases must be between 0 and 4096; 0 finds the smallest number that is enough")
