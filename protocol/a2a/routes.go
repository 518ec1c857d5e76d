package a2a

import (
	"net/http"
	"slices"
)

// Routes returns what the handler serves: a method and a path for each request over HTTP,
// and a method of JSON-RPC behind the path of an agent for each of these.
func (h *Handler) Routes() []string {
	var out []string
	for _, path := range WellKnown {
		out = append(out, "GET "+path, "GET "+Root+"/{agent}"+path)
	}
	for what, route := range restRoutes {
		for method := range route {
			out = append(out, method+" "+Root+"/{agent}/"+what)
		}
	}
	for v, known := range methods {
		for name := range known {
			out = append(out, http.MethodPost+" "+Root+"/{agent} "+string(v)+" "+name)
		}
	}
	for path, route := range kagentRoutes {
		for method := range route {
			out = append(out, method+" "+path)
		}
	}
	slices.Sort(out)
	return out
}
