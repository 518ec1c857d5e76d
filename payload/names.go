package payload

import "strings"

// EventTypes returns the names of all types in the catalogue, in its order.
func EventTypes() []string {
	names := make([]string, len(catalogue))
	for i, c := range catalogue {
		names[i] = c.name
	}
	return names
}

// IsAGUI reports whether typ is an event type of AG-UI 1.0. Tapedeck's own
// types have a dot in their names.
func IsAGUI(typ string) bool { return typeByName[typ] != nil && !strings.Contains(typ, ".") }
