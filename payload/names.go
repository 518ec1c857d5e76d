package payload

import "strings"

// EventTypes returns the names of all types in the catalogue, those of AG-UI first.
func EventTypes() []string {
	names := make([]string, len(catalogue))
	for i, c := range catalogue {
		names[i] = c.name
	}
	return names
}

// IsAGUI reports whether typ is an event type of AG-UI 1.0. The types of Tapedeck
// have a dot in their names.
func IsAGUI(typ string) bool { return typeByName[typ] != nil && !strings.Contains(typ, ".") }
