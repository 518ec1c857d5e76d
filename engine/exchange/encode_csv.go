package exchange

import (
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
)

var csvColumns = []string{"offset", "timestamp", "channel", "type", "thread", "invocation", "instance", "turn", "actor", "text", "data"}

func writeCSV(w *output, src *Source) error {
	c := csv.NewWriter(w)
	if err := c.Write(csvColumns); err != nil {
		return err
	}
	for e, err := range src.all() {
		if err != nil {
			return err
		}
		if err := c.Write(csvRow(&e)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func csvRow(e *tapedeck.Event) []string {
	turn := ""
	if e.Turn != 0 {
		turn = strconv.Itoa(e.Turn)
	}
	row := []string{
		strconv.FormatInt(e.Offset, 10), e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), e.Channel, e.Type, e.ThreadName(),
		e.Invocation, e.Instance, turn, e.Actor, textOf(e), string(e.Data),
	}
	for i, cell := range row {
		row[i] = harmless(cell)
	}
	return row
}

// harmless returns a cell that no spreadsheet reads as a formula. Some programs
// skip space and line ends before the sign that begins one.
func harmless(cell string) string {
	if first := strings.TrimLeft(cell, " \r\n\u00a0\ufeff"); first != "" && strings.ContainsRune("=+-@\t|＝＋－＠", []rune(first)[0]) {
		return "'" + cell
	}
	return cell
}

// textOf returns the text of an event, "" if it has none.
func textOf(e *tapedeck.Event) string {
	m := object(e.Data)
	switch e.Type {
	case tapedeck.MessageAdded:
		return plain(object(m["message"])["content"])
	case tapedeck.ToolCallResult:
		return plain(m["content"])
	case tapedeck.ToolCallStart:
		return str(m["toolCallName"])
	case tapedeck.TerminalOutput, tapedeck.TerminalInput:
		return str(m["data"])
	case tapedeck.PlanUpdated:
		return planText(m["entries"])
	}
	for _, name := range []string{"delta", "message", "title", "comment", "label", "reason", "name"} {
		if s, ok := text(m[name]); ok {
			return s
		}
	}
	return ""
}

func planText(raw json.RawMessage) string {
	var lines []string
	entries, _ := list(raw)
	for _, entry := range entries {
		m := object(entry)
		lines = append(lines, "["+str(m["status"])+"] "+str(m["content"]))
	}
	return strings.Join(lines, "\n")
}
