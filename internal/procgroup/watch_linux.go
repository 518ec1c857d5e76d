package procgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck/internal/bytesize"
)

// watchEvery is how often the keeper measures its processes. A program that grows quicker
// exceeds its limit by what it gets in that time.
const watchEvery = 50 * time.Millisecond

// watch kills all processes when they exceed the limits together.
func (k *keeper) watch(l Limits) {
	if l.Memory <= 0 && l.Processes <= 0 {
		return
	}
	for {
		<-time.After(watchEvery)
		all := below(os.Getpid())
		text := ""
		if l.Processes > 0 && len(all) > l.Processes {
			text = fmt.Sprintf("killed: it had more than %d processes", l.Processes)
		} else if l.Memory > 0 && memoryOf(all) > l.Memory {
			text = "killed: it used more than " + bytesize.Text(l.Memory) + " of memory"
		}
		if text != "" {
			fmt.Fprintf(k.report, saysExceeded+"\n", text)
			k.killAll()
			return
		}
	}
}

// memoryOf returns the bytes that processes have in memory, without the files that they
// have mapped. Memory that a process shares with its child counts twice.
func memoryOf(all []member) (sum int64) {
	for _, m := range all {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(m.pid) + "/status")
		if err != nil {
			continue // it has ended
		}
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ":")
			if name == "RssAnon" || name == "RssShmem" {
				n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
				sum += n << 10
			}
		}
	}
	return sum
}
