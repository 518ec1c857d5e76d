package hub

// Waiting returns the number of followers that wait for more.
func (h *Hub) Waiting() int { return int(h.waiting.Load()) }
