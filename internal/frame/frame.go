// Package frame has the frames of the WebSocket protocol tapedeck.v1. A frame is one JSON
// object on one line, and a message has one or more lines. package ws reads requests and
// writes answers, package client writes requests and reads answers.
package frame

import (
	"bytes"
	"iter"

	"github.com/tapedeck/tapedeck"
)

// The types of requests.
const (
	TypeAppend   = "append"
	TypeFollow   = "follow"
	TypeUnfollow = "unfollow"
)

// The types of answers.
const (
	TypeAck       = "ack"
	TypeEvent     = "event"
	TypeCaughtUp  = "caught-up"
	TypeEnd       = "end"
	TypeError     = "error"
	TypeHeartbeat = "heartbeat"
)

// A Request is a frame of a client.
type Request struct {
	Type    string
	Session string // "" for the session in the path of the socket

	// Of an append.
	Seq      int64 // the client's number of the append; each append has the next one
	Events   []tapedeck.Event
	Expect   *int64             // nil for any
	Producer *tapedeck.Producer // nil for none

	// Of a follow.
	From                                  int64
	Incarnation                           int64    // of the session that From is of; 0 if the client does not say it
	Channels, Threads, Types, Invocations []string // nil for all
	Until                                 string   // "terminal" or ""
}

// Lines yields the lines of a message that are not empty. They share its memory.
func Lines(message []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			line, rest, _ := bytes.Cut(message, []byte{'\n'})
			message = rest
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}
