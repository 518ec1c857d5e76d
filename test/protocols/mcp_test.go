package protocols

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck/view"
)

// mcpReader subscribes to the session as a resource, with the official client in a version
// of the Model Context Protocol, and reads it after each notification.
func mcpReader(version string) *reader {
	const uri = "tapedeck://sessions/" + session
	return &reader{name: "MCP " + version, follow: func(ctx context.Context, r *reader, url string) error {
		updated := make(chan struct{}, 1)
		c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
			ResourceUpdatedHandler: func(context.Context, *sdk.ResourceUpdatedNotificationRequest) {
				select {
				case updated <- struct{}{}:
				default:
				}
			},
		})
		s, err := c.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: url + "/mcp"}, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}); err != nil {
			return err
		}
		for {
			now, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
			if err != nil {
				return err
			}
			var shown view.Snapshot
			if err := json.Unmarshal([]byte(now.Contents[0].Text), &shown); err != nil {
				return err
			}
			r.change(func() { r.conversation = *conversationOf(&shown) })
			select {
			case <-updated:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}}
}
