// Package script is a runner whose agent says what a script tells it to say,
// with the timing that the script gives, so that tests, benchmarks,
// demonstrations and screenshots have an agent that is the same every time and
// needs no network.
//
// docs/scripts.md describes scripts for their authors.
package script
