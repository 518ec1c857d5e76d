package guard

import (
	"context"
	"io"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// Export returns a session as a file.
func (v *Guarded) Export(ctx context.Context, in api.ExportRequest) (api.Export, error) {
	ctx, _, err := v.g.whole(ctx, in.Session)
	if err != nil {
		return api.Export{}, err
	}
	return v.verbs.Export(ctx, in)
}

// PreviewExport tells what a redaction would leave out.
func (v *Guarded) PreviewExport(ctx context.Context, in api.ExportRequest) (api.RedactionPreview, error) {
	ctx, _, err := v.g.whole(ctx, in.Session)
	if err != nil {
		return api.RedactionPreview{}, err
	}
	return v.verbs.PreviewExport(ctx, in)
}

// imports returns the identity of a context if it may import for an owner, "" for none that is
// named. A program that restores sessions of others must notice that it may not.
func imports(ctx context.Context, owner string) (*access.Identity, error) {
	i, err := creates(ctx)
	switch {
	case err != nil:
	case i.Role != access.Admin && owner != "" && owner != i.Subject:
		err = tapedeck.Errorf(tapedeck.Forbidden, "only an admin imports sessions for another owner").WithHint("leave the owner out: then they are yours")
	case !i.Limits.IsZero():
		err = tapedeck.Errorf(tapedeck.Forbidden, "a token that is limited to some sessions cannot import others")
	}
	return i, err
}

// importer returns the owner of imported sessions. "" keeps the owners that the file names,
// which is for an admin only, as in the restore of a backup.
func importer(i *access.Identity, given string) string {
	if i.Role == access.Admin {
		return given
	}
	return i.Subject
}

// imported returns an import as the identity may do it. The sessions of a file that others
// wrote are shared with nobody, unless an admin restores them.
func imported(i *access.Identity, in api.ImportRequest) api.ImportRequest {
	in.Owner, in.Actor = importer(i, in.Owner), actor(i, in.Actor)
	if i.Role != access.Admin {
		in.WithoutLabels = shares
	}
	return in
}

// Import creates sessions from a file.
func (v *Guarded) Import(ctx context.Context, in api.ImportRequest, r io.Reader) (api.Imported, error) {
	i, err := imports(ctx, in.Owner)
	if err != nil {
		return api.Imported{}, err
	}
	if err := v.g.take(i, 1, 0); err != nil { // the rest is known afterwards
		return api.Imported{}, err
	}
	first, err := v.g.found(ctx, i, owner(i, in.Owner)) // before a large body is read
	if err != nil {
		return api.Imported{}, err
	}
	defer func() { first() }()
	used := false
	in.Creating = func(ctx context.Context) (created func(), err error) {
		if used {
			return v.g.found(ctx, i, owner(i, in.Owner))
		}
		used = true
		created, first = first, func() {}
		return created, nil
	}
	read := &counting{Reader: r}
	out, err := v.verbs.Import(onlyIf(ctx, i, "", 0, access.Own), imported(i, in), read)
	v.g.charge(i, out.Events, read.n)
	return out, err
}

// PreviewImport tells what an import would create.
func (v *Guarded) PreviewImport(ctx context.Context, in api.ImportRequest, r io.Reader) (api.ImportPreview, error) {
	i, err := imports(ctx, in.Owner)
	if err != nil {
		return api.ImportPreview{}, err
	}
	p, err := v.verbs.PreviewImport(ctx, imported(i, in), r)
	if err == nil {
		err = i.Valid() // the token may end before the body has arrived
	}
	if err != nil {
		return api.ImportPreview{}, err
	}
	return p, nil
}

// Presence notes where a user is. The user is the identity; only an admin names others.
func (v *Guarded) Presence(ctx context.Context, n api.PresenceNote) ([]payload.Presence, error) {
	ctx, i, err := v.g.whole(ctx, n.Session)
	switch {
	case err != nil:
		return nil, err
	case i.Role == access.Agent:
		return nil, tapedeck.Errorf(tapedeck.Forbidden, "an agent's token is not a user who looks at a session")
	case i.Role != access.Admin || n.User == "":
		n.User = i.Subject
	}
	if err := v.g.take(i, 1, 0); err != nil {
		return nil, err
	}
	if s, err := v.g.entry(ctx, n.Session); err != nil {
		return nil, err
	} else if s.Labels[api.PresenceLabel] == api.PresenceStored { // then it is an event
		if ctx, _, err = v.g.allow(ctx, n.Session, access.Write); err != nil {
			return nil, err
		}
	}
	return v.verbs.Presence(ctx, n)
}

// Present lists the users in a session.
func (v *Guarded) Present(ctx context.Context, session string) ([]payload.Presence, error) {
	ctx, _, err := v.g.whole(ctx, session)
	if err != nil {
		return nil, err
	}
	return v.verbs.Present(ctx, session)
}

// WatchPresence watches the users in a session. An identity that may not see them sees
// nobody.
func (v *Guarded) WatchPresence(ctx context.Context, session string) api.PresenceWatcher {
	ctx, _, err := v.g.whole(ctx, session)
	if err != nil {
		return nobody{}
	}
	return v.verbs.WatchPresence(ctx, session)
}

// nobody watches a session in which nobody is.
type nobody struct{}

func (nobody) Changed() <-chan struct{}  { return nil }
func (nobody) Changes() []tapedeck.Event { return nil }
func (nobody) Stop()                     {}
