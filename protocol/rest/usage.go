package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
)

var usageParameters = []string{"from", "to", "agent", "owner"}

// maxUsage is how many lines each list of a usage has.
const maxUsage = 1000

// A usageQuery says what of the usage is wanted.
type usageQuery struct {
	from, to string // days; "" for no limit
	agent    string
}

func (h *handler) usage(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, usageParameters...)
	want := usageQuery{from: dayOf(q, "from"), to: dayOf(q, "to"), agent: q.Filter("agent")}
	f := tapedeck.Filter{Owner: q.Filter("owner"), Limit: pageLimit, Sort: "activity"}
	if want.from != "" && want.to != "" && want.from > want.to {
		q.Fail("the parameter from must not be after to")
	}
	if q.Err != nil {
		return q.Err
	}
	sum := newUsageSum(want)
	if err := h.addUsage(r.Context(), f, sum); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return httpapi.WriteJSON(w, http.StatusOK, sum.usage())
}

// dayOf returns a parameter that is a day, "" if it is absent.
func dayOf(q *httpapi.Query, name string) string {
	s := q.String(name)
	if _, err := time.Parse(time.DateOnly, s); err != nil && q.Values.Has(name) {
		q.Fail("the parameter %s must be a day such as 2026-01-31, not %q", name, s)
	}
	return s
}

// addUsage adds the usage of the sessions of a filter. They come with the newest activity
// first, so those that were last active before the first day are not looked at.
func (h *handler) addUsage(ctx context.Context, f tapedeck.Filter, sum *usageSum) error {
	for {
		page, err := h.Sessions.List(ctx, f)
		if err != nil {
			return err
		}
		for i := range page.Sessions {
			s := &page.Sessions[i]
			if !s.Active.IsZero() && s.Active.UTC().Format(time.DateOnly) < sum.want.from {
				return nil
			}
			days, err := h.days(ctx, s)
			switch kind := tapedeck.KindOf(err); {
			case err != nil && (kind == tapedeck.NotFound || kind == tapedeck.Gone):
				continue // it was deleted in the meantime
			case err != nil:
				return err
			}
			sum.add(s, days)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
}

// days returns what a session used by day: as the catalogue has it, if that is the newest.
func (h *handler) days(ctx context.Context, s *tapedeck.Session) ([]view.DayUsage, error) {
	var row view.ListRow
	if t := &s.Totals; t.At == s.Head && view.HasDays(t.Row) && json.Unmarshal(t.Row, &row) == nil {
		return row.Days, nil
	}
	sum, err := h.Views.Summary(ctx, s.ID, -1)
	return sum.Days, err
}

// A usageSum adds up the usage of sessions.
type usageSum struct {
	want     usageQuery
	sessions int
	total    view.Used
	days     map[string]*view.Used
	agents   map[string]*view.Used
	models   map[[2]string]*view.Used // by provider and model
}

func newUsageSum(want usageQuery) *usageSum {
	return &usageSum{want: want, days: map[string]*view.Used{}, agents: map[string]*view.Used{}, models: map[[2]string]*view.Used{}}
}

func (u *usageSum) add(s *tapedeck.Session, days []view.DayUsage) {
	used := false
	for i := range days {
		d := &days[i]
		if d.Agent == "" {
			d.Agent = s.Agent
		}
		if d.Day < u.want.from || u.want.to != "" && d.Day > u.want.to || u.want.agent != "" && d.Agent != u.want.agent {
			continue
		}
		used = true
		u.total.Add(&d.Used)
		addTo(u.days, d.Day, &d.Used)
		addTo(u.agents, d.Agent, &d.Used)
		addTo(u.models, [2]string{d.Provider, d.Model}, &d.Used)
	}
	if used {
		u.sessions++
	}
}

func addTo[K comparable](sums map[K]*view.Used, key K, used *view.Used) {
	sum := sums[key]
	if sum == nil {
		sum = &view.Used{}
		sums[key] = sum
	}
	sum.Add(used)
}

func (u *usageSum) usage() api.Usage {
	out := api.Usage{From: u.want.from, To: u.want.to, Sessions: u.sessions, Total: u.total, Days: []api.UsageDay{}, Agents: []api.UsageAgent{}, Models: []api.UsageModel{}}
	out.Total.Round()
	days := slices.Sorted(maps.Keys(u.days))
	for _, day := range days[max(0, len(days)-maxUsage):] {
		out.Days = append(out.Days, api.UsageDay{Day: day, Used: rounded(u.days[day])})
	}
	for _, agent := range mostUsed(u.agents, cmp.Compare[string]) {
		out.Agents = append(out.Agents, api.UsageAgent{Agent: agent, Used: rounded(u.agents[agent])})
	}
	models := mostUsed(u.models, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, m := range models {
		out.Models = append(out.Models, api.UsageModel{Provider: m[0], Model: m[1], Used: rounded(u.models[m])})
	}
	return out
}

func rounded(u *view.Used) view.Used {
	u.Round()
	return *u
}

// mostUsed returns the keys with the most tokens first, at most [maxUsage].
func mostUsed[K comparable](sums map[K]*view.Used, compare func(a, b K) int) []K {
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b K) int {
		return cmp.Or(cmp.Compare(sums[b].Total, sums[a].Total), compare(a, b))
	})
	return keys[:min(len(keys), maxUsage)]
}
