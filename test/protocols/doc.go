// Package protocols has the test that follows one run of the real program through all
// protocols at once. It has no other code.
package protocols
