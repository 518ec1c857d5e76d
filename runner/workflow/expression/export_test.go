package expression

// SetMaxSteps sets how many steps an evaluation takes at most, and returns what puts it back.
func SetMaxSteps(n int) (restore func()) {
	before := maxWork
	maxWork = n
	return func() { maxWork = before }
}
