// Scale plans an installation for a given load, and simulates a day of it: on how many
// databases its sessions lie, how evenly, and which limit comes first.
//
//	go run ./bench/scale                         # 10 million sessions a day, 1 million followers, 100,000 tokens/s
//	go run ./bench/scale -databases 16           # with a fixed number of databases
//	go run ./bench/scale -sessions 100000 -followers 5000 -tokens 2000
//
// The costs of one event, one follower and one byte are flags. Their defaults are figures
// that this repository measures (docs/benchmarks.md), or assumptions, which the output
// marks. docs/design/0033-scale.md explains the layout.
package main
