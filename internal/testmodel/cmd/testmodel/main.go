// Command testmodel serves the scripted model, so that real agents can be tested
// without a real model.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tapedeck/tapedeck/internal/testmodel"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:4010", "where to listen; port 0 for a free one")
	log := flag.String("log", "", "a file that gets each request as a line of JSON")
	pause := flag.Duration("pause", 0, "pause before each word of a slow answer; 0 for 100ms")
	flag.Parse()
	if err := run(*addr, *log, *pause); err != nil {
		fmt.Fprintln(os.Stderr, "testmodel:", err)
		os.Exit(1)
	}
}

func run(addr, log string, pause time.Duration) error {
	var sink io.Writer
	if log != "" {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		sink = f
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String()) // the parent process waits for this line
	s := &http.Server{Handler: testmodel.New(testmodel.Options{Log: sink, Pause: pause}), ReadHeaderTimeout: 10 * time.Second}
	return s.Serve(l)
}
