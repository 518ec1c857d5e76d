package secret

import "testing"

func TestCut(t *testing.T) {
	for s, want := range map[string]string{
		"":                         "",
		"/api/v1/sessions/a":       "/api/v1/sessions/a",
		"/api/v1/sessions/td_abc":  "/api/v1/sessions/" + Instead,
		"tdl_abc":                  Instead,
		"tds_eyJ.x":                Instead,
		"/x?token=eyJhbGciOiJub25": "/x?token=" + Instead,
		"std_out and heyJude":      "std_out and heyJude",
		"é td_1":                   "é " + Instead,
	} {
		if got := Cut(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
