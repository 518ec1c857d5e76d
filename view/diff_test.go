package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
)

// said returns a snapshot of lines "thread invocation kind name text |
// arguments". "-" stands for no invocation.
func said(lines ...string) *Snapshot {
	s := &Snapshot{At: int64(len(lines))}
	for i, l := range lines {
		f := strings.SplitN(l, " ", 5)
		item := Item{Offset: int64(i), Thread: f[0], Invocation: strings.Trim(f[1], "-"), Status: tapedeck.StatusComplete}
		text, args, _ := strings.Cut(f[4], " | ")
		if f[2] == "tool" {
			s.Calls = append(s.Calls, ToolCall{Item: item, Name: f[3], Arguments: args, Result: &ToolResult{Text: text}})
		} else {
			s.Messages = append(s.Messages, Message{Item: item, ID: fmt.Sprint("m", i), Role: f[3], Text: strings.ReplaceAll(text, "/", "\n")})
		}
	}
	return s
}

var base = []string{
	"main i1 message user one", "main i1 message assistant a", `main i1 tool Read x | {"b":1,"a":2}`,
	"main i2 message user two", "main i2 message assistant b",
}

// briefDiff returns a diff as text: the number of common turns, then the turns
// with their changes.
func briefDiff(d Diff) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v", d.Common, d.Same)
	for _, t := range d.Turns {
		fmt.Fprintf(&b, "; %d", t.Turn)
		if t.A == nil {
			b.WriteString(" only b")
		}
		if t.B == nil {
			b.WriteString(" only a")
		}
		for _, c := range t.Changes {
			fmt.Fprintf(&b, " %s %s", c.Op, c.Name)
			for _, l := range append(append(c.Text, c.Arguments...), c.Status...) {
				b.WriteString(" " + l.Op + l.Text)
			}
		}
	}
	return b.String()
}

func TestCompare(t *testing.T) {
	tests := []struct {
		name string
		a, b []string
		want string
	}{
		{"the same", base, base, "2 true"},
		{"empty", nil, nil, "0 true"},
		{"other ids and spaces", base, []string{"main x message user one ", "main x message assistant a", `main x tool Read x | { "a": 2, "b": 1 }`, "main y message user two", "main y message assistant b"}, "2 true"},
		{"one goes on", base, base[:3], "1 false; 2 only a removed user removed assistant"},
		{"other answer", base, append(base[:4:4], "main i2 message assistant c"), "1 false; 2 changed assistant -b +c"},
		{"other arguments", base[:3], append(base[:2:2], `main i1 tool Read x | {"a":3,"b":1}`), "0 false; 1 changed Read  { -  \"a\": 2, +  \"a\": 3,    \"b\": 1  }"},
		{"one tool more", base[:3], append(base[:2:2], "main i1 tool Bash y | {}", base[2]), "0 false; 1 added Bash"},
		{"another first", base, append([]string{"main i0 message user zero"}, base...), "0 false; 1 changed user -one +zero removed assistant removed Read; 2 changed user -two +one changed assistant -b +a added Read; 3 only b added user added assistant"},
		{"a turn in between is the same", []string{"main i1 message user x", "main i2 message user y"}, []string{"main i1 message user z", "main i2 message user y"}, "0 false; 1 changed user -x +z; 2"},
		{"words of no invocation", []string{"main - message user x", "main i1 message assistant y", "main - message user z"}, []string{"main i1 message user x", "main i1 message assistant y"}, "1 false; 2 only a removed user"},
		{"a run that continues", base, append(base[:4:4], "main i3 message assistant c"), "1 false; 2 changed assistant -b +c"},
		{"a fork in mid-turn goes on", base[:3], []string{base[0], base[1], "main i9 tool Bash x | {}", "main i10 message user two"}, "0 false; 1 added Bash removed Read; 2 only b added user"},
		{"words alone", []string{"main - message user x", "main - message user y"}, []string{"main - message user x"}, "1 false; 2 only a removed user"},
		{"two threads", []string{"main i1 message user x", "side i2 message user y", "main i1 message assistant z"}, []string{"main i1 message user x", "main i1 message assistant z", "side i2 message user y"}, "2 true"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Compare(said(tt.a...), said(tt.b...), 0)
			if got := briefDiff(d); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if back := Compare(said(tt.b...), said(tt.a...), 0); back.Common != d.Common || back.Same != d.Same {
				t.Errorf("the other way round: %s", briefDiff(back))
			}
		})
	}
}

func TestCompareShared(t *testing.T) {
	if d := Compare(said(base...), said(base[:4]...), 99); d.Shared != 4 {
		t.Errorf("%d are shared", d.Shared)
	}
	b, err := json.Marshal(Compare(said(), said(base...), 0))
	if err != nil || !strings.Contains(string(b), `"a":null,"b":{"offset":0,"thread":"main","invocation":"i1"`) {
		t.Errorf("%s %v", b, err)
	}
}

func TestDiffText(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "", ""},
		{"", "a", "+a"},
		{"a\nb", "a\nc", " a|-b|+c"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\nx\n6\n7\n8\n9", "@2 lines are the same| 3| 4|-5|+x| 6| 7|@2 lines are the same"},
		{"1\n2\n3\n4", "1\n2\n3\nx", " 1| 2| 3|-4|+x"},
		{"a\nb\nc", "c\na\nb", "+c| a| b|-c"},
	} {
		var got []string
		for _, l := range diffText(tt.a, tt.b) {
			got = append(got, l.Op+l.Text)
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%q %q: %s", tt.a, tt.b, strings.Join(got, "|"))
		}
	}
	big := strings.Repeat("a\n", 3000)
	if n := len(diffText("x\n"+big+"y", "z\n"+strings.ReplaceAll(big, "a", "b")+"w")); n != 2*3002 {
		t.Errorf("%d lines", n)
	}
}

// TestOutputOfTool: the error of a tool is a line of its own.
func TestOutputOfTool(t *testing.T) {
	for _, tt := range []struct{ text, err, want string }{
		{"out", "", "out"}, {"", "exit 1", "exit 1"}, {"out", "exit 1", "out\nexit 1"}, {"", "", ""},
	} {
		if got := (&ToolResult{Text: tt.text, Error: tt.err}).output(); got != tt.want {
			t.Errorf("%q %q: %q", tt.text, tt.err, got)
		}
	}
}

// TestHunks: the hunks of two lists, joined, give the lists.
func TestHunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12)
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		var left, right []string
		for _, h := range hunks(a, b, func(a, b string) bool { return a == b }) {
			left, right = append(append(left, h.same...), h.a...), append(append(right, h.same...), h.b...)
		}
		if strings.Join(left, "") != strings.Join(a, "") || strings.Join(right, "") != strings.Join(b, "") {
			t.Fatalf("%v %v of %v %v", left, right, a, b)
		}
	})
}

// TestDurationsAreShownAndNotCompared: a diff shows the duration of a tool.
// Calls that differ only in it are the same.
func TestDurationsAreShownAndNotCompared(t *testing.T) {
	a, b := said(base...), said(base...)
	for i, ms := range []int64{3000, 2800} {
		s := []*Snapshot{a, b}[i]
		s.Calls[0].DurationMS = &ms
	}
	if d := Compare(a, b, 0); !d.Same {
		t.Errorf("they are not the same: %s", briefDiff(d))
	}
	b.Messages[1].Text = "another"
	d := Compare(a, b, 0)
	left, right := d.Turns[0].A.Tools[0].DurationMS, d.Turns[0].B.Tools[0].DurationMS
	if left == nil || *left != 3000 || right == nil || *right != 2800 || len(d.Turns[0].Changes) != 1 {
		t.Errorf("%v, %v, %s", left, right, briefDiff(d))
	}
}
