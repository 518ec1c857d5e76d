package main

import (
	"testing"
	"time"
)

func TestIdleTimeoutFlag(t *testing.T) {
	if d := newServe(&env{}).Flags().Lookup("idle-timeout").DefValue; d != "1h0m0s" || orNever(0) >= 0 || orNever(time.Minute) != time.Minute {
		t.Errorf("the default is %s", d)
	}
}
