package exchange

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"iter"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/view"
)

// A Player is the page that plays a recording: one classic script and one style,
// without any text that would end their elements early. A build without the screen
// has no player.
type Player struct{ Script, Style string }

const (
	// maxRecording is the largest number of bytes of events in a recording. A
	// browser keeps all of them in memory, unpacked.
	maxRecording = 50_000_000
	// segment is about how many of them are packed together. Browsers are slow
	// with very long elements, and with segments they can show a part early.
	segment = 1 << 20
)

// A tape has the members of a recording besides its events.
type tape struct {
	header
	Look
	ExportedAt view.Time    `json:"exported_at"`
	From       int64        `json:"from"` // the first exported offset in the session; in the file, offsets begin at 0
	To         int64        `json:"to"`
	Redacted   bool         `json:"redacted,omitempty"`
	Index      *view.Index  `json:"index"`
	Summary    view.Summary `json:"summary"`
}

// recorded yields the events of a recording. A player needs offsets without gaps,
// and runs that end. So active events are put in order as an import would do it.
// passed learns which offset each event gets; nil if nobody asks.
func (s *Source) recorded(passed func(offset, next int64)) iter.Seq2[tapedeck.Event, error] {
	if passed == nil {
		passed = func(int64, int64) {}
	}
	if !s.Effective {
		return func(yield func(tapedeck.Event, error) bool) {
			for e, err := range s.all() {
				passed(e.Offset, e.Offset)
				if !yield(e, err) {
					return
				}
			}
		}
	}
	return func(yield func(tapedeck.Event, error) bool) {
		var next int64
		stopped := false
		order := mender{verifier: order.NewVerifier(), emit: func(e tapedeck.Event) {
			if e.Channel == "" {
				e.Channel = tapedeck.ChannelOf(e.Type)
			}
			e.Offset = next
			next++
			stopped = stopped || !yield(e, nil)
		}}
		for e, err := range s.all() {
			if err == nil {
				passed(e.Offset, next)
				err = order.accept(e)
			}
			if stopped {
				return
			}
			if err != nil {
				yield(e, err)
				return
			}
		}
		order.endAllRuns()
	}
}

// checkRecording checks that there is a player, and that a browser can hold the
// events.
func checkRecording(src *Source) error {
	if src.Player.Script == "" {
		return tapedeck.Errorf(tapedeck.Unsupported, "this program was built without the page that plays a recording").
			WithHint("export it as ndjson, and import that into a program with the screen")
	}
	if src.limit == 0 {
		src.limit = maxRecording
	}
	size := 0
	for e, err := range src.recorded(nil) {
		if err != nil {
			return err
		}
		b, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if size += len(b) + 1; size > src.limit {
			return tapedeck.Errorf(tapedeck.TooLarge, "the events are more than %d MB, too many for one page", max(1, src.limit/1_000_000)).
				WithHint("export fewer events: up to an earlier offset, or only the active ones; ndjson has no limit")
		}
	}
	return nil
}

func writeHTML(w *output, src *Source) error {
	src.writeTop(w)
	about := tape{header: src.head(), To: src.Session.Head, Redacted: src.redacted, Index: new(view.Index)}
	about.ExportedAt = view.Time{Time: src.Now.UTC().Truncate(time.Second)}
	own := src.Session.ForkedAt
	if src.Effective {
		own = 0 // the place of the fork among the active events is unknown
	}
	sum := view.NewSummaryFold(own)
	p := packer{w: w}
	numbers := renumbering{wanted: src.Look}
	for e, err := range src.recorded(numbers.pass) {
		if err != nil {
			return err
		}
		about.Index.Apply(&e)
		sum.Apply(&e)
		about.Session.Head = e.Offset + 1
		if err := p.event(&e); err != nil {
			return err
		}
	}
	p.end()
	about.Summary = sum.Summary()
	about.Look = numbers.end(about.Session.Head)
	b, err := marshal(about)
	if err != nil {
		return err
	}
	p.begin("about")
	_, _ = p.gzip.Write(b) // the output keeps the error
	p.end()
	w.string("<script>", src.Player.Script, "</script>\n</body>\n</html>\n")
	return nil
}

// writeTop writes the part before the events. The policy lets the browser run and
// apply only the script and the style of this file, and load nothing.
func (s *Source) writeTop(w *output) {
	title := s.Session.Title
	if title == "" {
		title = s.Session.ID
	}
	w.string("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src `, hashOf(s.Player.Script),
		"; style-src ", hashOf(s.Player.Style), "; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n",
		"<meta name=\"referrer\" content=\"no-referrer\">\n",
		"<title>", html.EscapeString(titleOf(printable(title))), " · recording</title>\n<style>", s.Player.Style, "</style>\n</head>\n<body>\n<div id=\"root\"></div>\n",
		"<noscript>This is the recording of a session. It needs JavaScript to be played; it loads nothing.</noscript>\n")
}

// hashOf returns the name of a script or a style of the page in a policy.
func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// A packer writes data into elements that the browser does not run: gzip in
// base64, which cannot end them.
type packer struct {
	w    *output
	gzip *gzip.Writer
	text io.WriteCloser // nil while no element is open
	size int
}

func (p *packer) begin(what string) {
	p.w.string(`<script type="application/vnd.tapedeck.`, what, `">`)
	p.text, p.size = base64.NewEncoder(base64.StdEncoding, p.w), 0
	if p.gzip == nil {
		p.gzip = gzip.NewWriter(p.text)
	}
	p.gzip.Reset(p.text)
}

func (p *packer) event(e *tapedeck.Event) error {
	if p.text == nil {
		p.begin("events")
	}
	b, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	p.size += len(b) + 1
	if _, err = p.gzip.Write(append(b, '\n')); p.size >= segment {
		p.end()
	}
	return err
}

func (p *packer) end() {
	if p.text == nil {
		return
	}
	_, _ = p.gzip.Close(), p.text.Close() // the output keeps the errors
	p.text = nil
	p.w.string("</script>\n")
}
