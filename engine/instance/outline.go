package instance

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// maxOutlined is the largest number of messages of a thread of which an outline is made. An
// outline has about a kilobyte of each.
const maxOutlined = 100_000

// outline returns the events of a context without the texts in their contents, and the offset
// as of which it is. It is for contexts that are too long to be read.
func (r *Repository) outline(ctx context.Context, i *found) ([]view.ContextEvent, int64, error) {
	q := view.Query{At: new(int64(-1)), Thread: i.Thread, Limit: maxMessages}
	s, err := r.views.Snapshot(ctx, i.session, q)
	if err != nil {
		return nil, 0, err
	}
	total := len(s.Messages) + s.Earlier
	if s.Earlier > 0 {
		select {
		case r.outlining <- struct{}{}:
			defer func() { <-r.outlining }()
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	all := view.Snapshot{At: s.At}
	for q.At = &all.At; total <= maxOutlined; {
		all.Messages = append(outlined(s.Messages, outlineMessage), all.Messages...)
		all.Calls = append(outlined(s.Calls, outlineCall), all.Calls...)
		if s.Earlier == 0 || len(s.Messages) == 0 || s.Messages[0].Offset == 0 {
			break
		}
		q.Before = s.Messages[0].Offset
		if s, err = r.views.Snapshot(ctx, i.session, q); err != nil {
			return nil, 0, err
		}
	}
	if len(all.Messages) != total { // too many, or at one offset: such a thread was restated
		return nil, 0, tapedeck.Errorf(tapedeck.TooLarge, "the messages in the thread of instance %s cannot be numbered: they are %d", i.ID, total).
			WithHint("overwrite the thread from an offset on; at most %d are numbered", maxOutlined)
	}
	return view.ContextEvents(all, i.Instance), all.At, nil
}

func outlined[T any](items []T, outline func(*T) T) []T {
	out := make([]T, 0, len(items))
	for n := range items {
		out = append(out, outline(&items[n]))
	}
	return out
}

func outlineMessage(m *view.Message) view.Message {
	out := view.Message{Item: m.Item, ID: m.ID, Role: m.Role}
	if step := tapedeck.MetaOf(m.Metadata).Step; step != "" {
		out.Metadata, _ = json.Marshal(tapedeck.Meta{Step: step}.In(nil)) // valid JSON
	}
	return out
}

func outlineCall(k *view.ToolCall) view.ToolCall {
	out := view.ToolCall{Item: k.Item, ID: k.ID, Name: k.Name, MessageID: k.MessageID, Made: k.Made}
	out.Step = view.CallStep{ID: k.Step.ID, Uncalled: k.Step.Uncalled, Offset: k.Step.Offset, At: k.Step.At}
	if k.Result != nil {
		out.Result = &view.ToolResult{Offset: k.Result.Offset}
	}
	return out
}
