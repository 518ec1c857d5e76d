package engine

import (
	"context"
	"io"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine/exchange"
)

// Limits of a preview: the sessions that it lists, and the threads of each.
const (
	previewSessions = 100
	previewThreads  = 20
)

// PreviewImport returns what [Engine.Import] would create from the same input, and
// creates nothing. It reads the whole input, and fails as the import would.
func (e *Engine) PreviewImport(ctx context.Context, in api.ImportRequest, r io.Reader) (api.ImportPreview, error) {
	d, err := e.decoder(in, r)
	if err != nil {
		return api.ImportPreview{}, err
	}
	p := previewing{ids: map[string]bool{}}
	for ev, err := range d.Events() {
		if err == nil && p.out.Events%importEvents == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return api.ImportPreview{}, err
		}
		if entry, starts := d.Starts(); starts {
			if err := e.previewSession(ctx, &p, entry); err != nil {
				return api.ImportPreview{}, err
			}
		}
		p.addEvent(&ev)
	}
	p.endSession()
	p.out.Format, p.out.Lines, p.out.Skipped = d.Format(), d.Lines(), d.Skipped()
	return p.out, nil
}

func (e *Engine) decoder(in api.ImportRequest, r io.Reader) (*exchange.Decoder, error) {
	for what, v := range map[string]string{"title": in.Title, "owner": in.Owner, "actor": in.Actor} {
		if err := tapedeck.CheckName("the "+what, v); err != nil {
			return nil, err
		}
	}
	return exchange.NewDecoder(in.Format, r, exchange.Options{Title: in.Title, Owner: in.Owner, Actor: in.Actor, WithoutLabels: in.WithoutLabels, Now: e.options.Now})
}

// previewSession begins the next session, and checks whether its id is free.
func (e *Engine) previewSession(ctx context.Context, p *previewing, entry tapedeck.Session) error {
	p.endSession()
	p.beginSession()
	if !isID(entry.ID) || p.out.Total > previewSessions {
		return nil
	}
	p.one.ID = entry.ID
	if p.ids[entry.ID] {
		p.one.IDTaken = true
		return nil
	}
	p.ids[entry.ID] = true
	_, err := e.store.Head(ctx, entry.ID)
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound:
		return nil
	case "", tapedeck.Gone:
		p.one.IDTaken = true
		return nil
	}
	return err
}

// A previewing is an active preview.
type previewing struct {
	out     api.ImportPreview
	one     api.PreviewedSession
	entry   tapedeck.Session
	threads map[string]bool
	ids     map[string]bool // ids of the sessions before
}

func (p *previewing) beginSession() {
	p.out.Total++
	p.one, p.entry, p.threads = api.PreviewedSession{}, tapedeck.Session{}, map[string]bool{}
}

func (p *previewing) addEvent(e *tapedeck.Event) {
	p.out.Events++
	p.one.Events++
	p.entry.Apply(e)
	if !e.Time.IsZero() && e.Type != tapedeck.SessionImported {
		if p.one.First == nil || e.Time.Before(*p.one.First) {
			p.one.First = new(e.Time)
		}
		if p.one.Last == nil || e.Time.After(*p.one.Last) {
			p.one.Last = new(e.Time)
		}
	}
	if name := e.ThreadName(); tapedeck.ChannelOf(e.Type) != tapedeck.ChannelSession && !p.threads[name] && len(p.threads) < previewThreads {
		p.threads[name] = true
		p.one.Threads = append(p.one.Threads, name)
	}
}

func (p *previewing) endSession() {
	if p.out.Total == 0 || p.out.Total > previewSessions {
		return
	}
	p.one.Title = p.entry.Title
	p.out.Sessions = append(p.out.Sessions, p.one)
}
