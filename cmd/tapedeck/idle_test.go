package main

import (
	"testing"
	"time"
)

func TestIdleTimeoutFlag(t *testing.T) {
	if d := newServe(&env{}).Flags().Lookup("idle-timeout").DefValue; d != "1h0m0s" || timeLimit(0) >= 0 || timeLimit(time.Minute) != time.Minute {
		t.Errorf("the default is %s", d)
	}
}
