// Package adk keeps the sessions of Google's Agent Development Kit (ADK) in Tapedeck.
//
// A [Service] is a session.Service of ADK on a deck. Each session of ADK is a session
// of Tapedeck: what the agent says, thinks, calls and uses are events of the catalogue,
// so the screen, replay, export, search and all protocols show them. The log is the only
// truth: Get folds its active events, so a rewind or an undo from anywhere changes what
// the next run of the agent sees.
//
//	sessions := adk.NewService(d, adk.Options{})
//	record, err := sessions.Plugin()
//	if err != nil {
//		return err
//	}
//	r, err := runner.New(runner.Config{
//		AppName:        "weather",
//		Agent:          agent,
//		SessionService: sessions,
//		PluginConfig:   runner.PluginConfig{Plugins: []*plugin.Plugin{record}},
//	})
//
// The plugin is optional. With it, followers see text while the model writes it, and each
// run ends exactly when its invocation ends.
package adk
