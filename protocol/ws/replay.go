package ws

type replayOptions struct{ delta, content bool }

func (s *socket) serveReplay(o replayOptions) {}
