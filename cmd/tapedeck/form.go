package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/internal/decimal"
)

// fieldValue returns what a typed text stands for in a field. A field of a type that is not
// known here gets the text.
func fieldValue(f *tapedeck.FormField, text string) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	switch f.Type {
	case "integer", "number":
		if !json.Valid([]byte(trimmed)) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s takes a number, not %.40q", f.ID, trimmed)
		}
		switch _, err := decimal.Parse(trimmed); {
		case errors.Is(err, decimal.ErrSyntax):
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s takes a number, not %.40q", f.ID, trimmed)
		case err != nil:
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s cannot have %.40q: %s", f.ID, trimmed, decimal.Bounds)
		}
		return json.RawMessage(trimmed), nil
	case "boolean":
		switch strings.ToLower(trimmed) {
		case "y", "yes", "true", "1":
			return json.RawMessage("true"), nil
		case "n", "no", "false", "0":
			return json.RawMessage("false"), nil
		}
		return nil, tapedeck.Errorf(tapedeck.Invalid, "%s takes yes or no, not %.40q", f.ID, trimmed)
	case "enum":
		if n, err := strconv.Atoi(trimmed); err == nil && n >= 1 && n <= len(f.Options) && !hasOption(f, trimmed) {
			text = f.Options[n-1].Value
		}
	}
	return jsonText(text), nil
}

func hasOption(f *tapedeck.FormField, value string) bool {
	for _, o := range f.Options {
		if o.Value == value {
			return true
		}
	}
	return false
}

// jsonText returns a text as JSON.
func jsonText(s string) json.RawMessage {
	b, _ := json.Marshal(s) // any string can be encoded
	return b
}

// looseValue returns the JSON that a text is, otherwise the text as JSON.
func looseValue(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return jsonText(text)
}

// assignments reads arguments NAME=VALUE, and before them the object in a file, if one is
// named. The type of a value is that of its field; without a field, a value that is JSON
// counts as JSON, and any other as text.
func assignments(flag string, args []string, file string, fields []tapedeck.FormField) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fileError(file, err)
		}
		if err := json.Unmarshal(b, &out); err != nil || out == nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%s has no JSON object", file).WithHint(`it looks like {"name":"value"}`)
		}
	}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usageError("--%s takes NAME=VALUE, not %q", flag, arg)
		}
		out[name] = looseValue(text)
		for i := range fields {
			if fields[i].ID != name {
				continue
			}
			v, err := fieldValue(&fields[i], text)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil, nil //nolint:nilnil // nothing is given, which is no error
	}
	return out, nil
}

// fieldPrompt asks for a field on one line.
func fieldPrompt(f *tapedeck.FormField) string {
	var about []string
	switch f.Type {
	case "boolean":
		about = append(about, "y or n")
	case "date":
		about = append(about, "such as 2026-12-24")
	case "enum":
		for i, o := range f.Options {
			about = append(about, fmt.Sprintf("%d %s", i+1, nameOr(o.Label, o.Value)))
		}
	case "integer", "number":
		about = append(about, f.Type)
	}
	if f.Min != nil {
		about = append(about, "at least "+limitText(*f.Min))
	}
	if f.Max != nil {
		about = append(about, "at most "+limitText(*f.Max))
	}
	switch {
	case f.Default != nil:
		about = append(about, "default "+string(f.Default))
	case !f.Required:
		about = append(about, "may be empty")
	}
	text := nameOr(f.Label, f.ID)
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return terminal.VisibleLine(text)
}

// limitText returns a limit as the diagram has it: 9007199254740992 and not 9.007199254740992e+15.
func limitText(f float64) string {
	d, err := decimal.FromFloat(f)
	if err != nil {
		return fmt.Sprint(f)
	}
	return d.Text()
}

// openFields returns the fields that a user fills in.
func openFields(form []tapedeck.FormField) []tapedeck.FormField {
	var out []tapedeck.FormField
	for _, f := range form {
		if !f.ReadOnly {
			out = append(out, f)
		}
	}
	return out
}

// A filling is a form that a user fills in at the terminal, one line for each field.
type filling struct {
	option string
	fields []tapedeck.FormField // that are still to be filled in
	input  tapedeck.Members
}

// take takes the line for the next field. It reports why the line does not fit.
func (f *filling) take(line string) error {
	field := &f.fields[0]
	if strings.TrimSpace(line) == "" {
		if field.Required && field.Default == nil {
			return tapedeck.Errorf(tapedeck.Invalid, "%s is required", field.ID)
		}
	} else {
		v, err := fieldValue(field, line)
		if err != nil {
			return err
		}
		f.input[field.ID] = v
	}
	f.fields = f.fields[1:]
	return nil
}
