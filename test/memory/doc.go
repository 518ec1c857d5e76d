// Package memory measures the memory of the real program under hostile clients: large
// uploads, bodies that are announced but not sent, and readers that do not read.
package memory
