package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/access/tokens"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// fileTokenPrefix begins the id of a token of the file.
const fileTokenPrefix = "tok_"

// tokenVariable is the environment variable that has the token of this command line.
const tokenVariable = "TAPEDECK_TOKEN"

func newToken(e *env) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of a server",
		Long: `Create, ls and revoke edit the file of tokens of tapedeck serve --auth. The file has no
token, only their hashes. A running server notices a change within a second.

Issue makes a token of one session, such as a share link or the token of an agent that
runs elsewhere. A server makes it, and issued lists such tokens. They end with the token
that they were made with.

The roles are admin (everything), user (the sessions that it owns, and those that are
shared with it), reader (reads everything) and agent (reads one session and writes one
run of it). docs/security.md says more.

Each change is recorded in the audit log of the data folder (--data, see tapedeck audit),
if the folder has sessions. A running server records what changes in its file, too.

Commands send the token in $` + tokenVariable + ` to a server.`,
		Args: onlyCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&file, "auth", "auth.toml", "file of the tokens")
	c.AddCommand(newTokenCreate(e, &file), newTokenList(e, &file), newTokenRevoke(e, &file), newTokenIssue(e), newTokenIssued(e))
	return c
}

// noFile refuses --auth for a command that asks the server, which knows its own file.
func noFile(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("auth") {
		return usageError("%s asks the server, so --auth has no effect here; name the server with --url, or its data folder with --data", c.CommandPath())
	}
	return nil
}

// noServer refuses --url for a command that works on the file of tokens.
func noServer(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("url") {
		return usageError("%s works on a file of tokens, so --url has no effect here; name the file with --auth, on the machine of the server", c.CommandPath())
	}
	return nil
}

func newTokenCreate(e *env, file *string) *cobra.Command {
	var t tokens.Token
	var role string
	expires := lifetime{least: time.Second, most: maxDays}
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, this once",
		Example: `  tapedeck token create --subject admin --role admin
  tapedeck token create --subject ada --role user --expires 30d
  tapedeck token create --subject dashboard --role reader --label team=blue`,
		Args: both(noServer, noArgs),
		RunE: func(*cobra.Command, []string) error {
			t.Role = access.Role(role)
			if expires.Duration > 0 {
				t.Expires = time.Now().Add(expires.Duration).UTC().Truncate(time.Second)
			}
			made, secret, err := tokens.Create(*file, t)
			if err != nil {
				return err
			}
			if err := e.recordToken(audit.TokenCreate, made.ID, "of "+made.Subject+", role "+string(made.Role)); err != nil {
				return errors.Join(err, tokens.Revoke(*file, made.ID)) // nobody has seen it
			}
			if e.json {
				return e.printJSON(struct {
					tokens.Token
					Secret string `json:"token"`
				}{made, secret})
			}
			e.notice("token %s is in %s; only this time you see what to send:", made.ID, terminal.Clean(*file))
			fmt.Fprintln(e.stdout, secret)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&t.Subject, "subject", "", "who uses the token: the owner and the actor of what it writes (required)")
	f.StringVar(&role, "role", string(access.User), "admin, user or reader")
	f.StringVar(&t.Prefix, "prefix", "", "only sessions whose id begins with this")
	f.StringToStringVar(&t.Labels, "label", nil, "only sessions with these labels, such as team=blue")
	f.Var(&expires, "expires", "how long it is valid, "+expires.forms()+" (default: for ever)")
	_ = c.MarkFlagRequired("subject") // the flag exists
	return c
}

// A lifetime is a duration on the command line that may be in days.
type lifetime struct {
	time.Duration
	least time.Duration // 1 s for a token: a token with 0 is valid for ever
	most  int           // days that it has at most
}

// forms says how a lifetime is written, for the help and the error of its flag.
func (l *lifetime) forms() string {
	return fmt.Sprintf("such as 90m, 12h or 30d, at most %dd", l.most)
}

// Set implements [pflag.Value].
//
// [pflag.Value]: https://pkg.go.dev/github.com/spf13/pflag#Value
func (l *lifetime) Set(s string) error {
	const day = 24 * time.Hour
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(min(n, l.most+1)) * day
	}
	if err != nil || d < l.least || d > time.Duration(l.most)*day {
		return fmt.Errorf("it is a time %s", l.forms())
	}
	l.Duration = d
	return nil
}

// maxDays is the longest time in days if nothing else limits it: a hundred years.
const maxDays = 36500

func (l *lifetime) Type() string { return "duration" }

// String returns "" for the default: the help of each flag says what that means.
func (l *lifetime) String() string {
	if l.Duration == 0 {
		return ""
	}
	return l.Duration.String()
}

func newTokenList(e *env, file *string) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the tokens",
		Args:    both(noServer, noArgs),
		RunE: func(*cobra.Command, []string) error {
			list, err := tokens.List(*file)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(map[string]any{"tokens": append([]tokens.Token{}, list...)})
			}
			if len(list) == 0 {
				e.notice("there are no tokens in %s", terminal.Clean(*file))
			}
			p := e.pen()
			for i := range list {
				if err := p.Printf("%s  %-6s  %s%s\n", list[i].ID, list[i].Role, terminal.Clean(list[i].Subject), p.Paint(terminal.Dim, limitsOf(&list[i]))); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// instant is a time in the output for people, as commands take it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// limitsOf describes what restricts a token.
func limitsOf(t *tokens.Token) string {
	var b strings.Builder
	if t.Prefix != "" {
		fmt.Fprintf(&b, "  prefix %s", terminal.Clean(t.Prefix))
	}
	for name, value := range t.Labels {
		fmt.Fprintf(&b, "  %s=%s", terminal.Clean(name), terminal.Clean(value))
	}
	switch {
	case t.Expires.IsZero():
	case time.Now().Before(t.Expires):
		fmt.Fprintf(&b, "  until %s", instant(t.Expires))
	default:
		b.WriteString("  expired")
	}
	return b.String()
}

func newTokenRevoke(e *env, file *string) *cobra.Command {
	var session, by string
	c := &cobra.Command{
		Use:        "revoke [TOKEN-ID]",
		SuggestFor: []string{"delete", "rm", "remove"},
		Short:      "Revoke a token; the streams that it opened end",
		Long: `Revoke removes a token from the file of tokens. What was made with it, such as share
links, is no longer valid either.

With --session it revokes a token of that session, or without an id all of them. With
--issued-by it revokes all tokens of sessions that a user issued, also those that no list
shows. For both it asks the server; they cannot be used together.`,
		Example: `  tapedeck token revoke tok_…
  tapedeck token revoke --session ses_… grant_…
  tapedeck token revoke --issued-by ada`,
		Args: func(c *cobra.Command, args []string) error {
			if by != "" && session != "" {
				return usageError("--session and --issued-by cannot be used together: one revokes the tokens of a session, the other those that a user issued")
			}
			if by != "" || session != "" {
				if err := noFile(c, args); err != nil {
					return err
				}
			} else if err := noServer(c, args); err != nil {
				return err
			}
			if fine := len(args) == 1 && strings.TrimSpace(args[0]) != "" && by == "" || len(args) == 0 && (by == "") != (session == ""); !fine {
				return usageError("tapedeck token revoke takes the id of a token, see tapedeck token ls; or --session, or --issued-by")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			id := strings.Join(args, "")
			if strings.HasPrefix(id, tokens.Prefix) || strings.HasPrefix(id, grants.Prefix) {
				return tapedeck.Errorf(tapedeck.Invalid, "this is a token and not the id of one").WithHint("tapedeck token ls and tapedeck token issued show the ids")
			}
			switch {
			case session != "" && strings.HasPrefix(id, fileTokenPrefix):
				return usageError("%s is a token of the file; revoke it with: tapedeck token revoke %s", terminal.Clean(id), terminal.Clean(id))
			case by != "":
				return e.revokeIssued(c.Context(), by)
			case session != "":
				return e.revokeOfSession(c.Context(), session, id)
			}
			return e.revokeInFile(*file, id)
		},
	}
	c.Flags().StringVar(&session, "session", "", "the session whose tokens are revoked")
	c.Flags().StringVar(&by, "issued-by", "", "the user whose tokens of sessions are revoked")
	return c
}

// revokeInFile removes a token from a file.
func (e *env) revokeInFile(file, id string) error {
	if strings.HasPrefix(id, grants.IDPrefix) {
		return usageError("%s is a token of a session; revoke it with: tapedeck token revoke --session SESSION %s", id, id)
	}
	if err := tokens.Revoke(file, id); err != nil {
		return err
	}
	if err := e.recordToken(audit.TokenRevoke, id, ""); err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "%s was revoked, and that is not in the audit log: %w", id, err)
	}
	return e.printDone(map[string]string{"revoked": id}, "revoked %s", terminal.Clean(id))
}
