package workflow

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/payload"
)

// receivers are all places that wait for a message or throw one. Each ends with a message of the
// key.
var receivers = map[string]struct{ elements, flows string }{
	"receive task":         {`<receiveTask id="W" messageRef="m"/>`, "S>W W>E"},
	"catch event":          {`<intermediateCatchEvent id="W"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>`, "S>W W>E"},
	"boundary event":       {`<userTask id="U"/><endEvent id="E2"/><boundaryEvent id="W" attachedToRef="U"><messageEventDefinition messageRef="m"/></boundaryEvent>`, "S>U U>E W>E2"},
	"event-based":          {gateway("eventBased", "G") + `<endEvent id="E2"/><intermediateCatchEvent id="W"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>` + timer("intermediateCatchEvent", `id="T"`, "PT9000H"), "S>G G>W G>T W>E T>E2"},
	"event sub-process":    {`<userTask id="U"/><subProcess id="W" triggeredByEvent="true"><startEvent id="S2"><messageEventDefinition messageRef="m"/></startEvent><endEvent id="E2"/>` + flowsOf("S2>E2") + `</subProcess>`, "S>U U>E"},
	"within a sub-process": {`<subProcess id="P1"><startEvent id="S1"/><userTask id="U"/>` + flowsOf("S1>U") + `<subProcess id="W" triggeredByEvent="true"><startEvent id="S2"><messageEventDefinition messageRef="m"/></startEvent><endEvent id="E2"/>` + flowsOf("S2>E2") + `</subProcess></subProcess>`, "S>P1 P1>E"},
}

// withMessage adds the message m to a diagram.
func withMessage(xml, name, correlation string) string {
	return strings.Replace(xml, "<process ", `<message id="m" name="`+name+`" tapedeck:correlation="`+correlation+`"/><signal id="s" name="`+name+`"/><process `, 1)
}

// TestNoCorrelation: an element whose correlation key has no value fails, and takes no message.
func TestNoCorrelation(t *testing.T) {
	senders := map[string]struct{ elements, flows string }{
		"send task":   {`<sendTask id="W" messageRef="m"/>`, "S>W W>E"},
		"throw event": {`<intermediateThrowEvent id="W"><messageEventDefinition messageRef="m"/></intermediateThrowEvent>`, "S>W W>E"},
		"end event":   {`<endEvent id="W"><messageEventDefinition messageRef="m"/></endEvent>`, "S>W"},
	}
	for key, want := range map[string]string{
		"= none": `the correlation key "= none" is null`, "= empty": `the correlation key "= empty" is an empty text`, "{{ none }}": `the correlation key "{{ none }}" is an empty text`,
		"= far":  `the correlation key "= far" is the number 1e7000, which has more than 512 digits`,
		"= long": `the correlation key "= long" is a text of 513 bytes; a key has at most 512`,
	} {
		for _, places := range []map[string]struct{ elements, flows string }{receivers, senders} {
			for name, at := range places {
				inBubble(t, func(t *testing.T) {
					xml := withMessage(diagramOf(startEnd+at.elements, strings.Fields(at.flows)...), "paid", key)
					h := newHost(t, xml, "none", nil, "empty", "", "far", json.Number("1e7000"), "long", strings.Repeat("y", 513))
					w, err := h.run()
					if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `" failed: the`) || w.Code != codeExpression {
						t.Errorf("%s of %s: %v, %s", key, name, err, w.Code)
					}
				})
			}
		}
	}
}

// TestNoName: messages and signals without a name do not find each other.
func TestNoName(t *testing.T) {
	for name, element := range map[string]string{
		"message": `<receiveTask id="W" messageRef="m"/>`, "sent message": `<sendTask id="W" messageRef="m"/>`,
		"signal": `<intermediateCatchEvent id="W"><signalEventDefinition signalRef="s"/></intermediateCatchEvent>`, "thrown signal": `<intermediateThrowEvent id="W"><signalEventDefinition signalRef="s"/></intermediateThrowEvent>`,
	} {
		inBubble(t, func(t *testing.T) {
			h := newHost(t, withMessage(diagramOf(startEnd+element, "S>W", "W>E"), "= none", "7"), "none", nil)
			if _, err := h.run(); err == nil || !strings.Contains(err.Error(), `"W" failed: the name of the `+name[strings.LastIndex(name, " ")+1:]+` is empty: "= none"`) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestNumberAsCorrelation: a key that is a number is the same text however it was written, also a
// large one, and the message with another number is another one's.
func TestNumberAsCorrelation(t *testing.T) {
	zeros := strings.Repeat("0", 34)
	for _, c := range []struct{ number, key, fits, other string }{
		{"1e34", "= n", "1" + zeros, "1e+34"}, {"1" + zeros, "= n", "1" + zeros, "1" + zeros + "0"}, {"1e34", "{{ n }}", "1" + zeros, "1e34"}, {"1e34", "order-{{ n }}", "order-1" + zeros, "order-1e+34"},
		{"12.50", "= n", "12.5", "12"}, {"1e-40", "= n", "0." + zeros + "000001", "0"}, {"10000000000000000000000000000000000000000001", "= n", "10000000000000000000000000000000000000000001", "1e43"}, {"1e43", "= n * 10", "1" + zeros + "0000000000", "7"},
	} {
		for name, at := range receivers {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, withMessage(diagramOf(startEnd+at.elements, strings.Fields(at.flows)...), "paid", c.key), "n", json.Number(c.number))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := h.begin(ctx, ""); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- h.walk(ctx, "") }()
				synctest.Wait()
				h.send(payload.WorkflowMessage{Name: "paid", Correlation: c.other})
				synctest.Wait()
				if strings.Contains(h.trace(), "!W") {
					t.Errorf("%s %s: the message of %s is taken", name, c.number, c.other)
				}
				h.send(payload.WorkflowMessage{Name: "paid", Correlation: c.fits})
				synctest.Wait()
				if !strings.Contains(h.trace(), "!W") {
					t.Errorf("%s %s: the message of %s is not taken", name, c.number, c.fits)
				}
				cancel()
				<-ended
			})
		}
	}
}
