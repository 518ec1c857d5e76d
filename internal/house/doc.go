// Package house holds the test that keeps the rooms apart: which package may
// import which. It has no code of its own.
package house
