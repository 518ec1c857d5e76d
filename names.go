package tapedeck

import "strings"

// EventTypes returns the names of all types in the catalogue.
func EventTypes() []string { return nil }

// IsAGUI reports whether typ is an event type of AG-UI 1.0. The types of Tapedeck
// have a dot in their names.
func IsAGUI(typ string) bool { return strings.Contains(typ, "x") }
