package narrate

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck/payload"
)

// todoTools maps each tool that sets a whole plan to the member that has the list. The
// names are in lower case and without "_".
var todoTools = map[string]string{
	"todowrite": "todos", "writetodos": "todos", "updateplan": "plan", "updatetodos": "todos", "todo": "todos",
}

// A todo is an entry of a plan, with the members of all known tools.
type todo struct {
	Content     string `json:"content"`
	Description string `json:"description"`
	Step        string `json:"step"`
	Subject     string `json:"subject"`
	Text        string `json:"text"`
	Status      string `json:"status"`
	Priority    string `json:"priority"`
	Completed   bool   `json:"completed"`
}

// Todos returns the plan that a tool call sets. It reports false if the tool does not
// set the plan, or if its arguments have no valid plan.
func Todos(name string, args json.RawMessage) ([]payload.PlanEntry, bool) {
	member, ok := todoTools[strings.ToLower(strings.ReplaceAll(name, "_", ""))]
	if !ok {
		return nil, false
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(args, &input) != nil {
		return nil, false
	}
	return Entries(input[member])
}

// Entries returns a list of todos as the entries of a plan. It reports false if list
// is not a list of todos.
func Entries(list json.RawMessage) ([]payload.PlanEntry, bool) {
	var todos []todo
	if json.Unmarshal(list, &todos) != nil || todos == nil {
		return nil, false
	}
	entries := make([]payload.PlanEntry, len(todos))
	for i, t := range todos {
		entries[i] = payload.PlanEntry{
			Content:  cmp.Or(t.Content, t.Step, t.Subject, t.Text, t.Description),
			Status:   status(t.Status, t.Completed),
			Priority: priority(t.Priority),
		}
	}
	return entries, true
}

func status(s string, completed bool) string {
	switch s = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s)); {
	case completed, s == "completed", s == "complete", s == "done":
		return "completed"
	case s == "inprogress", s == "active", s == "doing":
		return "in_progress"
	case s == "cancelled", s == "canceled":
		return "cancelled"
	}
	return "pending"
}

func priority(p string) string {
	if p == "high" || p == "medium" || p == "low" {
		return p
	}
	return ""
}

// A board is the plan of an agent whose tool calls each add or change one task.
type board struct {
	tasks   []boardTask
	pending map[string]func(Answer) bool // by call: applies the change after the answer, and reports whether it did
}

type boardTask struct {
	id    string
	entry payload.PlanEntry
}

// maxTasks is the number of tasks that a board keeps.
const maxTasks = 1000

// called registers a call that changes the board. The change takes effect with the
// answer.
func (b *board) called(call, name string, args json.RawMessage) {
	var change func(Answer) bool
	switch name {
	case "TaskCreate":
		change = b.create(args)
	case "TaskUpdate":
		change = b.update(args)
	default:
		return
	}
	if b.pending == nil {
		b.pending = map[string]func(Answer) bool{}
	}
	b.pending[call] = change
}

// answered applies the change of a call. It returns the plan, and whether the plan has
// changed.
func (b *board) answered(call string, a Answer) ([]payload.PlanEntry, bool) {
	change := b.pending[call]
	delete(b.pending, call)
	if change == nil || a.Failed || !change(a) {
		return nil, false
	}
	entries := make([]payload.PlanEntry, len(b.tasks))
	for i, t := range b.tasks {
		entries[i] = t.entry
	}
	return entries, true
}

var taskNumber = regexp.MustCompile(`#(\d+)`)

func (b *board) create(args json.RawMessage) func(Answer) bool {
	var t todo
	if json.Unmarshal(args, &t) != nil {
		return nil
	}
	return func(a Answer) bool {
		id := createdID(a)
		if id == "" || len(b.tasks) >= maxTasks {
			return false
		}
		b.tasks = append(b.tasks, boardTask{id, payload.PlanEntry{
			Content: cmp.Or(t.Subject, t.Content, t.Description), Status: status(t.Status, false),
		}})
		return true
	}
}

// createdID returns the id of the new task, which only the answer has; "" if it cannot
// be found.
func createdID(a Answer) string {
	var native struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	if json.Unmarshal(a.Native, &native) == nil && native.Task.ID != "" {
		return native.Task.ID
	}
	if m := taskNumber.FindSubmatch(a.Content); m != nil {
		return string(m[1])
	}
	return ""
}

func (b *board) update(args json.RawMessage) func(Answer) bool {
	var t struct {
		todo
		TaskID string `json:"taskId"`
		ID     string `json:"id"`
	}
	if json.Unmarshal(args, &t) != nil {
		return nil
	}
	id := cmp.Or(t.TaskID, t.ID)
	return func(Answer) bool {
		i := slices.IndexFunc(b.tasks, func(task boardTask) bool { return task.id == id })
		if i < 0 {
			return false
		}
		if t.Status == "deleted" {
			b.tasks = slices.Delete(b.tasks, i, i+1)
			return true
		}
		e := &b.tasks[i].entry
		e.Content = cmp.Or(t.Subject, e.Content)
		if t.Status != "" {
			e.Status = status(t.Status, false)
		}
		return true
	}
}
