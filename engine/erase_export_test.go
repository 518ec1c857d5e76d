package engine

// Merged is merged.
var Merged = merged
