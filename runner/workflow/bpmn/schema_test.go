package bpmn

import "testing"

// TestNumbersOfLimits: a limit of a field, or a number of a schema, is accepted exactly if a
// float64 has its digits.
func TestNumbersOfLimits(t *testing.T) {
	for number, want := range map[string]bool{
		"0": true, "-0.5": true, "0.1": true, "999999999999999": true, "0.123456789012345": true, "123456789.012345": true, "1e308": true, "-1.7e308": true, "1e-300": true, "9007199254740992": true, "1.7976931348623157e308": true, "12.50": true,
		"9007199254740993": false, "0.12345678901234567890": false, "1e309": false, "1.8e308": false, "1e-400": false, "12345678901234567.5": false,
	} {
		r := &reader{}
		r.schema(&AgentTask{}, `{"minimum": `+number+`}`, at{})
		accepted := len(r.problems) == 0
		r = &reader{}
		var f Field
		r.bounds(at{}, &f, map[string]string{"min": number})
		if accepted != want || (len(r.problems) == 0) != want || (f.Min != nil) != want {
			t.Errorf("%s: %t, %v", number, accepted, r.problems)
		}
	}
}
