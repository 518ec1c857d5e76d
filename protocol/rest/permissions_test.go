package rest_test

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Answer knows the option "yes" of every permission except "none" and "old".
func (g *engine) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	switch {
	case a.Permission == "none":
		return api.Answered{}, tapedeck.Errorf(tapedeck.NotFound, "session %s has no permission %q", a.Session, a.Permission)
	case a.Permission == "old":
		return api.Answered{}, tapedeck.Errorf(tapedeck.Conflict, "the permission old was answered already: no")
	case a.Option != "yes":
		return api.Answered{}, tapedeck.Errorf(tapedeck.Invalid, "the permission %s has no option %q", a.Permission, a.Option).WithHint("choose one of yes")
	}
	data, _ := json.Marshal(tapedeck.Choice{ID: a.Permission, Option: a.Option, Outcome: "selected"})
	done, err := g.Append(ctx, tapedeck.Append{Session: a.Session, Events: []tapedeck.Event{{Type: tapedeck.PermissionAnswered, Data: data}}})
	return api.Answered{Permission: a.Permission, Option: a.Option, Offset: done.First}, err
}
