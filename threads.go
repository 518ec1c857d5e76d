package tapedeck

import "strings"

// SubThreadPrefix begins the names of the threads of sub-agents that an engine has
// made. No task is given to them.
const SubThreadPrefix = "sub_"

// IsSubThread reports whether a thread is that of a sub-agent, by its name.
func IsSubThread(thread string) bool { return strings.HasPrefix(thread, SubThreadPrefix) }
