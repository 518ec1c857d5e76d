// Package crash has the tests that kill the real program or fill its disk. It has no
// other code.
package crash
