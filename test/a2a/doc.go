// Package a2a has the tests that use the real program with the official A2A client for
// Go. It has no other code.
package a2a
