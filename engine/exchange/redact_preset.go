package exchange

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A preset is a set of rules that many users need.
type preset struct {
	keys     []string
	patterns []presetPattern
}

// A presetPattern is a pattern that cannot match a text without any of needs.
// Checking that is much faster.
type presetPattern struct {
	name, pattern string
	needs         []string
}

var presets = map[string]preset{
	"secrets": {
		keys: []string{
			"password", "passwd", "passphrase", "secret", "client_secret", "api_key", "x-api-key", "access_token", "refresh_token",
			"id_token", "auth_token", "session_token", "bearer_token", "authorization", "proxy-authorization", "private_key",
			"aws_secret_access_key", "secret_access_key", "secret_key", "cookie", "set-cookie",
		},
		patterns: []presetPattern{
			{"private key", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`, []string{"PRIVATE KEY"}},
			{"bearer token", `\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)[ \t]+[A-Za-z0-9._~+/-]{12,}=*`, []string{"earer", "EARER", "asic", "ASIC"}},
			{"AWS access key", `\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b`, []string{"AKIA", "ASIA", "ABIA", "ACCA"}},
			{"key of a model's provider", `\bsk-[A-Za-z0-9_-]{16,}`, []string{"sk-"}},
			{"GitHub token", `\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})`, []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}},
			{"GitLab token", `\bglpat-[A-Za-z0-9_-]{20,}`, []string{"glpat-"}},
			{"Slack token", `\bxox[abeoprs]-[A-Za-z0-9-]{10,}`, []string{"xox"}},
			{"Google API key", `\bAIza[0-9A-Za-z_-]{35}`, []string{"AIza"}},
			{"JSON Web Token", `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, []string{".eyJ"}},
			{"password in a URL", `\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@"']{1,256}:[^\s/@"']{1,256}@`, []string{"://"}},
			{"password in the environment", `\b[A-Z0-9_]*(?:PASSWORD|SECRET|TOKEN|API_KEY)[A-Z0-9_]*=[^\s"']{4,}`, []string{"PASSWORD", "SECRET", "TOKEN", "API_KEY"}},
		},
	},
	"pii": {
		patterns: []presetPattern{{"e-mail address", `(?i)\b[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9-]{1,63}\.)+[a-z]{2,24}\b`, []string{"@"}}},
	},
}

func (r *Redactor) preset(name string) error {
	p, ok := presets[name]
	if !ok {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no preset %q of redaction", short(name)).
			WithHint("there are: %s", strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
	}
	for _, k := range p.keys {
		if err := r.addKey(name+": key "+k, k); err != nil {
			return err
		}
	}
	for _, one := range p.patterns {
		r.add(name+": "+one.name, regexp.MustCompile(one.pattern)).needs = one.needs
	}
	return nil
}
