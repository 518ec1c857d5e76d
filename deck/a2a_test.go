package deck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
)

// silent is an agent that does nothing.
func silent(context.Context, tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(func(tapedeck.Event, error) bool) {}
}

// TestPushNotifications: a deck tells an allowed receiver how a task ends. Neither its
// database nor its log has the secrets of the client.
func TestPushNotifications(t *testing.T) {
	ended := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err == nil && bytes.Contains(b, []byte("TASK_STATE_COMPLETED")) {
			ended <- r.Header.Get("Authorization") + " " + r.Header.Get("X-A2A-Notification-Token")
		}
	}))
	defer receiver.Close()
	send := func(d *deck.Deck, id string) (int, string) {
		return do(d, "POST", "/a2a/bot/message:send", `{"message":{"messageId":"`+id+`","role":"ROLE_USER","contextId":"c","parts":[{"text":"go"}]},
			"configuration":{"taskPushNotificationConfig":{"url":"`+receiver.URL+`/url-secret","token":"`+secret+`","authentication":{"scheme":"Bearer","credentials":"`+secret+`"}}}}`)
	}
	agents := []deck.Agent{{Name: "bot", Runner: tapedeck.RunnerFunc(silent)}}
	dir := t.TempDir()

	d := openAt(t, dir, deck.Options{Agents: agents})
	if code, answer := send(d, "m0"); code != 400 || !strings.Contains(answer, "not public") || strings.Contains(answer, secret) {
		t.Errorf("a private address: %d %s", code, answer)
	}
	_ = d.Close(context.Background())

	var log bytes.Buffer
	d = openAt(t, dir, deck.Options{Agents: agents, AllowWebhooks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	code, answer := send(d, "m1")
	var sent struct{ Task struct{ ID string } }
	if err := json.Unmarshal([]byte(answer), &sent); code != 200 || err != nil {
		t.Fatalf("%d %s", code, answer)
	}
	if got := <-ended; got != "Bearer "+secret+" "+secret {
		t.Errorf("the headers have %q", got)
	}
	if code, answer := do(d, "GET", "/a2a/bot/tasks/"+sent.Task.ID+"/pushNotificationConfigs", ""); code != 200 || !strings.Contains(answer, secret) {
		t.Errorf("%d %s", code, answer)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("the folder has %v, %v", files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte("url-secret")) {
			t.Errorf("%s has the secret, %v", f, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, push.KeyFile))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v, %v", info.Mode(), err)
	}
	_ = d.Close(context.Background())
	if strings.Contains(log.String(), secret) || strings.Contains(log.String(), "url-secret") {
		t.Errorf("the log has the secret:\n%s", &log)
	}

	d = openAt(t, dir, deck.Options{Agents: agents, NoSubscriptions: true})
	if code, answer := send(d, "m2"); code != 400 || !strings.Contains(answer, "PUSH_NOTIFICATION_NOT_SUPPORTED") {
		t.Errorf("without push notifications: %d %s", code, answer)
	}
}
