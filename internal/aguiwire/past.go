package aguiwire

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/view"
)

// A Past finds messages that a thread has reverted. A page that has not seen the rewind sends
// them again.
type Past struct {
	Head       *tapedeck.Session
	Thread     string
	What, Hint string // for the error: the name of the thread, and what the client can do
	Events     interface {
		Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
	}
	Timelines interface {
		Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
	}
}

// Repeated looks for the ids of messages that the thread lacks. It returns the ids that only an
// earlier attempt of a step had, because a page keeps the text of an attempt. A rewind that has
// reverted one of ids is a [tapedeck.Conflict]. A client keeps the messages of kept after a
// rewind, so these are returned, too.
func (p *Past) Repeated(ctx context.Context, ids, kept []string) (map[string]bool, error) {
	if len(ids)+len(kept) == 0 || p.Head.LastJump == 0 {
		return nil, nil
	}
	t, err := p.Timelines.Timeline(ctx, p.Head.ID, p.Head.Head)
	if err != nil {
		return nil, err
	}
	wanted, repeated := places(kept, ids), map[string]bool{}
	refused := map[string]bool{}
	for _, id := range ids {
		refused[id] = true
	}
	isAttempt := func(at int64) bool {
		return slices.ContainsFunc(t.Jumps(), func(j tapedeck.Jump) bool {
			return j.Attempt && j.Reverts(p.Thread) && j.To <= at && at < j.Offset
		})
	}
	end := p.Head.Head
	for _, active := range slices.Backward(append([]tapedeck.OffsetRange{{}}, t.Ranges(p.Thread, p.Head.Head)...)) {
		err := p.read(ctx, active.To, end, func(e *tapedeck.Event) error {
			for _, id := range wanted.in(e) {
				if refused[id] && !isAttempt(e.Offset) {
					return tapedeck.Errorf(tapedeck.Conflict, "%s has reverted the message %.100q", p.What, id).WithHint("%s", p.Hint)
				}
				repeated[id] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		end = active.From
	}
	return repeated, nil
}

// read reads the events of the thread in a range.
func (p *Past) read(ctx context.Context, from, to int64, each func(*tapedeck.Event) error) error {
	for from < to {
		page, err := p.Events.Read(ctx, p.Head.ID, tapedeck.Range{From: from, Limit: int(min(to-from, tapedeck.DefaultLimit))})
		if err != nil {
			return err
		}
		if len(page.Records) == 0 {
			return tapedeck.Errorf(tapedeck.Conflict, "session %s has been replaced meanwhile", p.Head.ID)
		}
		for _, r := range page.Records {
			e, err := r.Event()
			if err == nil && e.Channel != tapedeck.ChannelSession && e.ThreadName() == p.Thread {
				err = each(&e)
			}
			if err != nil {
				return err
			}
		}
		from = page.Next
	}
	return nil
}

// anywhere is the offset of a [place] that may be at any.
const anywhere = -1

// A place is an id in the log, and the offset of an event with it.
type place struct {
	id     string
	offset int64
}

// A placeSet has the ids of a client by what they can be in the log: itself, or what
// [Rename] has made it from.
type placeSet map[place]string

func places(ids ...[]string) placeSet {
	s := placeSet{}
	for _, id := range slices.Concat(ids...) {
		s[place{id, anywhere}] = id
		for base := id; ; {
			i := strings.LastIndexByte(base, '@')
			if i < 0 {
				break
			}
			offset, err := strconv.ParseInt(base[i+1:], 10, 64)
			if err != nil {
				break
			}
			base = base[:i]
			s[place{base, offset}] = id
		}
	}
	return s
}

// in returns the ids of messages of the client that begin with an event, or end with it.
func (s placeSet) in(e *tapedeck.Event) (found []string) {
	note := func(id string) {
		if id == "" {
			return
		}
		for _, at := range [...]int64{anywhere, e.Offset} {
			if name, ok := s[place{id, at}]; ok {
				found = append(found, name)
			}
		}
	}
	member := func(data []byte, name string) { note(jsonobj.StringOf(jsonobj.Member(data, name))) }
	switch e.Type {
	case tapedeck.RunStarted:
		note(e.Invocation) // the id of a message in the AI SDK
	case tapedeck.MessageAdded:
		member(jsonobj.Member(e.Data, "message"), "id")
	case tapedeck.MessagesSnapshot:
		list := jsonobj.ReadArray(jsonobj.Member(e.Data, "messages"))
		for m, ok := list.Next(); ok; m, ok = list.Next() {
			member(m, "id")
		}
	case tapedeck.ToolCallStart: // a client makes a message for a call without one
		member(e.Data, "toolCallId")
		member(e.Data, "parentMessageId")
	case tapedeck.TextMessageStart, tapedeck.ReasoningMessageStart, tapedeck.ActivitySnapshot, tapedeck.ToolCallResult:
		member(e.Data, "messageId")
	}
	return found
}
