// Package bpmn is the model of a BPMN 2.0 file, as far as a run needs it: processes,
// their elements and flows, with all expressions compiled. A problem of a file has the
// element and the line.
package bpmn
