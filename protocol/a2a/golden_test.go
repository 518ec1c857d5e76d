package a2a_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// generated matches ids that the server generates.
var generated = regexp.MustCompile(`\b([a-z]+)_[0-9A-Z]{26}`)

// An alias names generated ids by their order, so that conversations can be compared.
type alias struct{ real, short map[string]string }

// hide replaces generated ids: the first invocation is inv_1.
func (a *alias) hide(text []byte) []byte {
	return generated.ReplaceAllFunc(text, func(id []byte) []byte {
		short, ok := a.short[string(id)]
		if !ok {
			prefix, _, _ := strings.Cut(string(id), "_")
			n := 1
			for ; a.real[fmt.Sprintf("%s_%d", prefix, n)] != ""; n++ {
			}
			short = fmt.Sprintf("%s_%d", prefix, n)
			a.short[string(id)], a.real[short] = short, string(id)
		}
		return []byte(short)
	})
}

// show replaces the names in a request.
func (a *alias) show(text []byte) []byte {
	s := string(text)
	for short, id := range a.real {
		s = regexp.MustCompile(`\b`+short+`\b`).ReplaceAllString(s, id)
	}
	return []byte(s)
}

// Each conversation begins with prose. Then come requests and the responses to them.
// The agent bot does what its task says, see obey. The clock begins with the year 2000.
// A conversation whose name begins with "session" is with the policy per-session.
func TestConversations(t *testing.T) {
	apitest.Conversations(t, func(t *testing.T, name string, files []txtar.File) (out []txtar.File) {
		o := a2a.Options{Version: "1.2.3"}
		if strings.HasPrefix(name, "session") {
			o.Policy = a2a.PerSession
		}
		inBubble(t, o, func(w *world) { out = converse(w, files) })
		return out
	})
}

func converse(w *world, files []txtar.File) (out []txtar.File) {
	ids := alias{map[string]string{}, map[string]string{}}
	for _, f := range files {
		if f.Name != "request" {
			continue
		}
		response := apitest.Ask(w.T, w, ids.show(f.Data), "Content-Type", "Cache-Control", "Allow")
		out = append(out, f, txtar.File{Name: "response", Data: ids.hide(response)})
		time.Sleep(time.Second) // in the bubble: until the agent rests
	}
	return out
}
