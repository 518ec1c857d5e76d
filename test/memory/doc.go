// Package memory measures the memory of the real program while clients hold on to
// it: large uploads, promises, readers that read nothing.
package memory
