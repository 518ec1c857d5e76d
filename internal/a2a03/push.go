package a2a03

import sdk "github.com/a2aproject/a2a-go/v2/a2a"

// A TaskPushConfig is the push notification config of a task.
type TaskPushConfig struct {
	TaskID string      `json:"taskId"`
	Config *PushConfig `json:"pushNotificationConfig"`
}

// A PushConfig says where a client wants to be told of a task.
type PushConfig struct {
	ID    string    `json:"id,omitempty"`
	URL   string    `json:"url"`
	Token string    `json:"token,omitempty"`
	Auth  *PushAuth `json:"authentication,omitempty"`
}

// A PushAuth has the credentials that a receiver expects. Of the schemes the first one is
// used.
type PushAuth struct {
	Schemes     []string `json:"schemes"`
	Credentials string   `json:"credentials,omitempty"`
}

// ToV1 returns the config in the form of version 1.0.
func (c *PushConfig) ToV1() *sdk.PushConfig {
	out := &sdk.PushConfig{ID: c.ID, URL: c.URL, Token: c.Token}
	if c.Auth != nil {
		out.Auth = &sdk.PushAuthInfo{Credentials: c.Auth.Credentials}
		if len(c.Auth.Schemes) > 0 {
			out.Auth.Scheme = c.Auth.Schemes[0]
		}
	}
	return out
}

// OfPushConfig returns the config of a task in the form of version 0.3.
func OfPushConfig(c *sdk.PushConfig) *TaskPushConfig {
	out := &TaskPushConfig{string(c.TaskID), &PushConfig{ID: c.ID, URL: c.URL, Token: c.Token}}
	if c.Auth != nil {
		out.Config.Auth = &PushAuth{Schemes: []string{}, Credentials: c.Auth.Credentials}
		if c.Auth.Scheme != "" {
			out.Config.Auth.Schemes = append(out.Config.Auth.Schemes, c.Auth.Scheme)
		}
	}
	return out
}
