package subscription

// Routes returns the requests that the dispatcher serves.
func (d *Dispatcher) Routes() []string {
	const one = root + "/subscriptions/{sub}"
	return []string{
		"GET " + root + "/jwks.json", "GET " + root + "/subscriptions", "GET " + one, "PUT " + one, "DELETE " + one,
		"POST " + one + "/streams", "DELETE " + one + "/streams/{path}",
		"POST " + one + "/claim", "POST " + one + "/ack", "POST " + one + "/callback", "POST " + one + "/release",
	}
}
