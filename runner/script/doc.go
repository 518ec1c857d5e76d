// Package script is a runner whose agent plays a script with the timing of the script.
// So tests, benchmarks, demonstrations and screenshots have an agent that does the same
// every time and needs no network.
//
// docs/scripts.md describes how to write scripts.
package script
