package replay

import "testing"

// Ctrl-C cancels a run and keeps its partial answer.
func TestCancelInATerminal(t *testing.T) {
	p := open(t)
	p.run("echo before; tapedeck create talk --agent long; tapedeck run 'talk for a while' --session talk; echo exit=$?")
	p.await("the run", "› talk for a while", "for a")
	p.press("C-c")
	p.await("the end of the run", "tapedeck: cancelling", "cancelled", "exit=130")
	p.run("clear; tapedeck tasks talk")
	p.await("the task", "cancelled", "talk for a while")
}

// A second Ctrl-C exits at once, whatever happens to the run.
func TestLeaveInATerminal(t *testing.T) {
	p := open(t)
	p.run("tapedeck create talk --agent long; tapedeck run 'talk for a while' --session talk; echo exit=$?")
	p.await("the run", "› talk for a while", "for a")
	p.press("C-c", "C-c")
	p.await("the shell", "exit=130")
}

// Before an action that cannot be undone, the program asks, and only yes confirms.
func TestConfirmInATerminal(t *testing.T) {
	p := open(t)
	for _, c := range []struct{ name, answer, code string }{
		{"no", "n", "1"}, {"nothing", "Enter", "1"}, {"end", "C-d", "1"}, {"interrupt", "C-c", "130"},
	} {
		p.run("clear; printf 'case=%s\\n' " + c.name + "; tapedeck delete $S; echo exit=$?")
		p.await(c.name, "case="+c.name, "Delete ses_", "(Listing the files, 19 events)? [y/N]")
		if p.press(c.answer); c.answer == "n" {
			p.press("Enter")
		}
		p.await(c.name, "case="+c.name, "exit="+c.code)
	}
	p.run("clear; tapedeck ls; tapedeck erase $S --events 1 --reason test; echo exit=$?")
	p.await("the question", "Listing the files", "Erase 1 of 19 events")
	p.press("y", "Enter")
	p.await("the receipt", "erased 1 event", "exit=0")
}
