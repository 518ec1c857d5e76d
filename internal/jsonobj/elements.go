package jsonobj

// An array reads the elements of a JSON array one by one without copying. Like the
// reader of [Read] it checks only what it needs to find the ends of values.
type array struct {
	rest  []byte
	begun bool
	done  bool
	Bad   bool
}

// ReadArray returns a reader of the array in data.
func ReadArray(data []byte) array {
	rest := SkipSpace(data)
	if len(rest) == 0 || rest[0] != '[' {
		return array{Bad: true, done: true}
	}
	return array{rest: rest[1:]}
}

// Next returns the next element. After the last element it returns false; then Bad says
// whether the array was malformed.
func (a *array) Next() (value []byte, ok bool) {
	if a.done {
		return nil, false
	}
	a.rest = SkipSpace(a.rest)
	switch {
	case len(a.rest) > 0 && a.rest[0] == ']':
		a.done, a.Bad = true, len(SkipSpace(a.rest[1:])) > 0
		return nil, false
	case !a.begun:
	case len(a.rest) == 0 || a.rest[0] != ',':
		return a.fail()
	default:
		a.rest = SkipSpace(a.rest[1:])
	}
	a.begun = true
	n := ValueLen(a.rest)
	if n == 0 {
		return a.fail()
	}
	value, a.rest = a.rest[:n:n], a.rest[n:]
	return value, true
}

func (a *array) fail() ([]byte, bool) {
	a.done, a.Bad = true, true
	return nil, false
}
