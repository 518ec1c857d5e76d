// Package house has tests of the whole code base: which package may import which,
// whether the tests that the documentation names exist, and whether texts use the
// words of the glossary. It has no other code.
package house
