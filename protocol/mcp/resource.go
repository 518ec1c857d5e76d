package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
)

// resourceRoot begins the URI of each session.
const resourceRoot = "tapedeck://sessions/"

// listPage is how many sessions a page of the list of resources has.
const listPage = 50

func resourceURI(session string) string { return resourceRoot + session }

// addResources adds the template of sessions. The list of them is not known to the SDK; see
// listing. In the template the + allows the characters : and @ of an id.
func (s *server) addResources() {
	s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: resourceRoot + "{+id}", Name: "session", Title: "Session", MIMEType: "application/json",
		Description: "The newest part of the conversation of a session, in the form of read_session. A subscriber learns when the session has new events. " + dataNotice,
	}, s.readResource)
}

// sessionOf returns the session of a URI.
func sessionOf(uri string) (string, error) {
	id, ok := strings.CutPrefix(uri, resourceRoot)
	if !ok || tapedeck.CheckID("the session", id) != nil {
		return "", sdk.ResourceNotFoundError(uri)
	}
	return id, nil
}

func (s *server) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	id, err := sessionOf(req.Params.URI)
	if err != nil {
		return nil, err
	}
	c, err := s.conversation(ctx, conversationInput{Session: id, Limit: defaultMessages, Text: defaultText})
	if err != nil {
		return nil, s.resourceError(ctx, req.Params.URI, err)
	}
	data, err := encode(c)
	if err != nil {
		return nil, s.resourceError(ctx, req.Params.URI, err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: string(data)}}}, nil
}

// resourceError returns the error of a request about a resource.
func (s *server) resourceError(ctx context.Context, uri string, err error) error {
	if kind := tapedeck.KindOf(err); kind == tapedeck.NotFound || kind == tapedeck.Gone {
		return sdk.ResourceNotFoundError(uri)
	}
	return protocolError(s.public(ctx, "resources", err))
}

// protocolError returns an error that is no result of a tool.
func protocolError(e *tapedeck.Error) error {
	code := int64(jsonrpc.CodeInternalError)
	if e.Kind == tapedeck.Invalid {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf("%s: %s", e.Kind, e.Message)}
}

// listing answers a request for the list of resources with a page of sessions.
func (s *server) listing(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		list, ok := req.(*sdk.ListResourcesRequest)
		if !ok {
			return next(ctx, method, req)
		}
		cursor := ""
		if list.Params != nil {
			cursor = list.Params.Cursor
		}
		page, err := s.Reader.Sessions(ctx, tapedeck.Filter{Cursor: cursor, Limit: listPage})
		if err != nil {
			return nil, protocolError(s.public(ctx, method, err))
		}
		out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, NextCursor: page.Next}
		for i := range page.Sessions {
			out.Resources = append(out.Resources, resource(&page.Sessions[i]))
		}
		private(ctx, req, &out.Cacheable)
		return out, nil
	}
}

func resource(e *tapedeck.Session) *sdk.Resource {
	return &sdk.Resource{
		URI: resourceURI(e.ID), Name: e.ID, Title: e.Title, MIMEType: "application/json",
		Description: fmt.Sprintf("a session: %s, %d events", e.Status, e.Head),
		Annotations: &sdk.Annotations{LastModified: e.Updated.UTC().Format("2006-01-02T15:04:05.000Z")},
	}
}

// private forbids proxies to keep an answer. Clients must not keep it either, because it may
// change at once.
func private(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
	c.TTLMs, c.CacheScope = 0, "private"
}

// maxSubscriptions is the largest number of sessions to which one client subscribes.
const maxSubscriptions = 100

func (s *server) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	id, err := sessionOf(req.Params.URI)
	if err != nil {
		return err
	}
	entry, err := s.Reader.Session(ctx, id)
	if err != nil {
		return s.resourceError(ctx, req.Params.URI, err)
	}
	err = s.watches.add(ctx, req.Session, id, entry.Head)
	if errors.Is(err, errTooMany) {
		return protocolError(tapedeck.Errorf(tapedeck.Invalid, "a client can subscribe to %d sessions at most", maxSubscriptions))
	}
	return err
}

func (s *server) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	id, err := sessionOf(req.Params.URI)
	if err == nil {
		s.watches.remove(req.Session, id)
	}
	return err
}

// updated tells the subscribers of a session that it has new events.
func (s *server) updated(ctx context.Context, session string) {
	err := s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: resourceURI(session)})
	if err != nil {
		s.Logger.Warn("the subscribers of a session could not be notified", "session", session, "error", err)
	}
}
