package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// measureDeck compares the appends of a program that embeds Tapedeck with those of the
// bare store, which checks less, wakes no followers and keeps no search index. Both are
// measured in turn, each round in new folders.
func measureDeck(ctx context.Context, o options, r *report) error {
	for _, writers := range []int{1, 64} {
		name := fmt.Sprintf("deck: %d goroutines, 1 event per append, 230 B each, compared with the bare store", writers)
		if !r.wants(name) {
			continue
		}
		var bare, whole []float64
		for range o.rounds {
			a, err := bareAppends(ctx, o, writers)
			if err != nil {
				return err
			}
			b, err := deckAppends(ctx, o, writers)
			if err != nil {
				return err
			}
			bare, whole = append(bare, a), append(whole, b)
		}
		ratio := quantile(whole, .5) / quantile(bare, .5)
		r.alone(name, fmt.Sprintf("%.2f× (%.0f events/s)", ratio, quantile(whole, .5)), "≥ 0.95×", ratio >= .95)
	}
	return nil
}

// note returns an event of about 230 bytes that may come at any time.
func note() tapedeck.Event {
	return tapedeck.Event{Type: "bench.note", Data: sample().Data}
}

func bareAppends(ctx context.Context, o options, writers int) (rate float64, err error) {
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return appendRate(ctx, logOf(s), note(), writers, 1, o.length)
}

func deckAppends(ctx context.Context, o options, writers int) (rate float64, err error) {
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	d, err := deck.Open(ctx, dir, deck.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close(ctx)) }()
	create := func(ctx context.Context, id string) error {
		_, err := d.Create(ctx, api.NewSession{ID: id})
		return err
	}
	return appendRate(ctx, log{create, d.Append}, note(), writers, 1, o.length)
}
