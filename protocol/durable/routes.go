package durable

// Routes returns the requests that the handler serves, without those of subscriptions. A
// path with {view} stands for each view of a session.
func (h *handler) Routes() []string {
	out := []string{"GET " + Root, "OPTIONS " + Root + "/{path}"}
	for _, method := range allMethods[:len(allMethods)-1] {
		out = append(out, method+" "+Root+"/{path}", method+" "+Root+"/sessions/{id}")
	}
	for _, method := range readMethods[:len(readMethods)-1] {
		out = append(out, method+" "+Root+"/sessions/{id}/{view}")
	}
	return out
}
