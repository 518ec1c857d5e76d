package quota

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// Limits are those of one account. 0 is no limit.
type Limits struct {
	Sessions int   // that it owns
	Streams  int   // sessions and streams that it follows at once
	Events   int64 // that it sends in a second, averaged over ten
	Bytes    int64 // of these events and of tasks, likewise
	Runs     int   // that are open or wait in its sessions
}

// Settings are limits as a file has them. Nil takes the more general one.
type Settings struct {
	Sessions *int64 `toml:"sessions,omitempty"`
	Streams  *int64 `toml:"streams,omitempty"`
	Events   *int64 `toml:"events_per_second,omitempty"`
	Bytes    *int64 `toml:"bytes_per_second,omitempty"`
	Runs     *int64 `toml:"runs,omitempty"`
}

// A Config is the table [quota] of a file. The settings of a subject go before those of its
// role, and these before the others. The others are not for admins.
type Config struct {
	Settings
	Roles    map[access.Role]Settings `toml:"role,omitempty"`
	Subjects map[string]Settings      `toml:"subject,omitempty"`
}

// maxLimit is the largest limit: sums of it do not overflow.
const maxLimit = 1 << 40

// Check reports what is wrong with a configuration.
func (c *Config) Check() error {
	for role, s := range c.Roles {
		if !slices.Contains(access.Roles, role) {
			return tapedeck.Errorf(tapedeck.Invalid, "quota: there is no role %.64q", string(role)).WithHint("the roles are admin, user, reader and agent")
		}
		if err := s.check("quota.role." + string(role)); err != nil {
			return err
		}
	}
	for subject, s := range c.Subjects {
		if err := tapedeck.CheckID("quota: the subject", subject); err != nil {
			return err
		}
		if err := s.check("quota.subject." + subject); err != nil {
			return err
		}
	}
	return c.check("quota")
}

func (s *Settings) check(table string) error {
	for name, v := range s.all() {
		if *v != nil && (**v < 0 || **v > maxLimit) {
			return tapedeck.Errorf(tapedeck.Invalid, "%s: %s is a number from 0, which is no limit, to %d", table, name, int64(maxLimit))
		}
	}
	return nil
}

func (s *Settings) all() map[string]**int64 {
	return map[string]**int64{"sessions": &s.Sessions, "streams": &s.Streams, "events_per_second": &s.Events, "bytes_per_second": &s.Bytes, "runs": &s.Runs}
}

// Of returns the limits of an account. A nil configuration has none.
func (c *Config) Of(k Key) Limits {
	if c == nil {
		return Limits{}
	}
	general := c.Settings
	if k.Role == access.Admin {
		general = Settings{}
	}
	role, subject := c.Roles[k.Role], c.Subjects[k.Subject]
	pick := func(of func(*Settings) *int64) int64 {
		for _, s := range []*Settings{&subject, &role, &general} {
			if v := of(s); v != nil {
				return *v
			}
		}
		return 0
	}
	return Limits{
		Sessions: int(pick(func(s *Settings) *int64 { return s.Sessions })),
		Streams:  int(pick(func(s *Settings) *int64 { return s.Streams })),
		Events:   pick(func(s *Settings) *int64 { return s.Events }),
		Bytes:    pick(func(s *Settings) *int64 { return s.Bytes }),
		Runs:     int(pick(func(s *Settings) *int64 { return s.Runs })),
	}
}
