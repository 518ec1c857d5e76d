package main

import (
	"context"
	"strings"

	"github.com/tapedeck/tapedeck/api"
)

// tree orders forks after their parents and returns the depth of each session.
func tree(sessions []api.SessionRow) (order []api.SessionRow, depth []int) {
	known, children := map[string]bool{}, map[string][]api.SessionRow{}
	for _, s := range sessions {
		known[s.ID] = true
	}
	for _, s := range sessions {
		parent := s.Parent
		if !known[parent] || s.Copy { // a copy is independent
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	var visit func(parent string, d int)
	visit = func(parent string, d int) {
		for _, s := range children[parent] {
			order, depth = append(order, s), append(depth, d)
			visit(s.ID, d+1)
		}
	}
	visit("", 0)
	return order, depth
}

const sparkWidth = 16

// spark draws how the events of a session are spread over its time. If the server does
// not know it, the line is blank.
func (l *listing) spark(ctx context.Context, session string) string {
	blank := strings.Repeat(" ", sparkWidth)
	index, err := l.client.ReplayIndex(ctx, session, -1)
	if err != nil || len(index.Density.Counts) == 0 {
		return blank
	}
	return sparkLine(index.Density.Counts, sparkWidth)
}

// sparkLine draws numbers as a line of width characters. Every number above 0 is
// visible.
func sparkLine(counts []int64, width int) string {
	slots, highest := make([]int64, width), int64(1)
	for i := range slots {
		from := i * len(counts) / width
		for _, n := range counts[from:max(from+1, (i+1)*len(counts)/width)] {
			slots[i] += n
		}
		highest = max(highest, slots[i])
	}
	bars := []rune("▁▂▃▅▇")
	var b strings.Builder
	for _, n := range slots {
		if n <= 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(bars[min(int64(len(bars))-1, n*int64(len(bars))/(highest+1))])
	}
	return b.String()
}
