package process_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the agents of the tests: it prints the lines of
// the file in testdata that is named by the dialect and the task. A line that begins
// with "!" is a command.
func TestMain(m *testing.M) {
	if dialect := os.Getenv("DECK_TEST_DIALECT"); dialect != "" {
		play(filepath.Join(os.Getenv("DECK_TEST_DATA"), dialect+"."+os.Args[len(os.Args)-1]+".jsonl"))
		os.Exit(0)
	}
	if path := os.Getenv("DECK_TEST_RECORDING"); path != "" {
		play(path)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "there is no such task or conversation")
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	may := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		act, ok := strings.CutPrefix(line, "!")
		if !ok {
			fmt.Println(line)
			continue
		}
		name, rest, _ := strings.Cut(act, " ")
		switch name {
		case "wait": // reads until a line contains the argument
			for in.Scan() && !strings.Contains(in.Text(), rest) {
			}
			if !strings.Contains(in.Text(), rest) {
				os.Exit(8)
			}
		case "read": // reads until a line contains the argument, and repeats its message
			for in.Scan() && !strings.Contains(in.Text(), rest) {
			}
			if !strings.HasSuffix(in.Text(), "}") || !strings.Contains(in.Text(), rest) {
				os.Exit(8)
			}
			fmt.Println(strings.TrimSuffix(in.Text(), "}") + `,"isReplay":true}`)
		case "end": // its input must end now
			if in.Scan() {
				os.Exit(9)
			}
		case "asked": // waits for the answer to a question, and makes a file if it is allowed
			for in.Scan() && !strings.Contains(in.Text(), `"behavior"`) {
			}
			if may = strings.Contains(in.Text(), `"allow"`); may {
				if err := os.WriteFile(os.Getenv("DECK_TEST_DID"), nil, 0o600); err != nil {
					panic(err)
				}
			}
		case "allowed", "denied":
			if may == (name == "allowed") {
				fmt.Println(rest)
			}
		case "until": // repeats the argument until the message to stop arrives
			stop := make(chan bool)
			go func() {
				for in.Scan() && !strings.Contains(in.Text(), `"interrupt"`) {
				}
				close(stop)
			}()
			for stopped := false; !stopped; {
				select {
				case <-stop:
					stopped = true
				default:
					fmt.Println(rest)
				}
			}
		case "endless": // repeats the argument until SIGINT; then it exits with 0
			for {
				select {
				case <-interrupted:
					os.Exit(0)
				default:
					fmt.Println(rest)
				}
			}
		case "deaf":
			signal.Ignore(os.Interrupt, syscall.SIGTERM)
		case "spawn":
			c := exec.Command("/bin/sh", "-c", "trap '' TERM INT; while :; do sleep 1000; done")
			c.Stdout = os.Stdout
			if err := c.Start(); err != nil {
				panic(err)
			}
		case "flood": // prints one line of this many MiB
			n, _ := strconv.Atoi(rest)
			fmt.Println(`{"text":"` + strings.Repeat("x", n<<20) + `"}`)
		case "stderr":
			fmt.Fprintln(os.Stderr, rest)
		case "exit":
			n, _ := strconv.Atoi(rest)
			os.Exit(n)
		case "hang":
			<-time.After(time.Hour)
		}
	}
}
