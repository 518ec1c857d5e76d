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
	"github.com/tapedeck/tapedeck/access/tokens"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// tokenVariable is the environment variable that has the token of this command line.
const tokenVariable = "TAPEDECK_TOKEN"

func newToken(e *env) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of a server",
		Long: `Token edits the file of tokens of tapedeck serve --auth. The file has no token, only
their hashes. A running server notices a change within a second.

The roles are admin (everything), user (the sessions that it owns, and those that are
shared with it), reader (reads everything) and agent (reads one session and writes one
run of it). docs/security.md says more.

Each change is recorded in the audit log of the data folder (--data, see tapedeck audit),
if there is such a folder. A running server records what changes in its file, too.

Commands send the token in $` + tokenVariable + ` to a server.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&file, "auth", "auth.toml", "file of the tokens")
	c.AddCommand(newTokenCreate(e, &file), newTokenList(e, &file), newTokenRevoke(e, &file))
	return c
}

func newTokenCreate(e *env, file *string) *cobra.Command {
	var t tokens.Token
	var role string
	var expires lifetime
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, this once",
		Example: `  tapedeck token create --subject admin --role admin
  tapedeck token create --subject ada --role user --expires 30d
  tapedeck token create --subject dashboard --role reader --label team=blue
  tapedeck token create --subject coder --role agent --session ses_1 --invocation inv_1`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			t.Role = access.Role(role)
			if expires > 0 {
				t.Expires = time.Now().Add(time.Duration(expires)).UTC().Truncate(time.Second)
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
	f.StringVar(&role, "role", string(access.User), "admin, user, reader or agent")
	f.StringVar(&t.Prefix, "prefix", "", "only sessions whose id begins with this")
	f.StringToStringVar(&t.Labels, "label", nil, "only sessions with these labels, such as team=blue")
	f.StringVar(&t.Session, "session", "", "the only session; for an agent")
	f.StringVar(&t.Invocation, "invocation", "", "the run that it writes; for an agent")
	f.Var(&expires, "expires", "how long it is valid, such as 12h or 30d (default: for ever)")
	_ = c.MarkFlagRequired("subject") // the flag exists
	return c
}

// A lifetime is a duration on the command line that may be in days.
type lifetime time.Duration

// Set implements [pflag.Value].
//
// [pflag.Value]: https://pkg.go.dev/github.com/spf13/pflag#Value
func (l *lifetime) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		if d = time.Duration(n) * 24 * time.Hour; n > maxDays {
			err = strconv.ErrRange
		}
	}
	if err != nil || d < 0 {
		return fmt.Errorf("it is written as 90m, 12h or 30d, at most %dd; 0 is for ever", maxDays)
	}
	*l = lifetime(d)
	return nil
}

// maxDays is the longest time in days: a hundred years.
const maxDays = 36500

func (l *lifetime) String() string { return time.Duration(*l).String() }
func (l *lifetime) Type() string   { return "duration" }

func newTokenList(e *env, file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the tokens",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := tokens.List(*file)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(map[string]any{"tokens": append([]tokens.Token{}, list...)})
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

// limitsOf describes what restricts a token.
func limitsOf(t *tokens.Token) string {
	var b strings.Builder
	for _, l := range [...]struct{ name, value string }{{"prefix", t.Prefix}, {"session", t.Session}, {"run", t.Invocation}} {
		if l.value != "" {
			fmt.Fprintf(&b, "  %s %s", l.name, terminal.Clean(l.value))
		}
	}
	for name, value := range t.Labels {
		fmt.Fprintf(&b, "  %s=%s", terminal.Clean(name), terminal.Clean(value))
	}
	switch {
	case t.Expires.IsZero():
	case time.Now().Before(t.Expires):
		fmt.Fprintf(&b, "  until %s", t.Expires.Local().Format(time.DateTime))
	default:
		b.WriteString("  expired")
	}
	return b.String()
}

func newTokenRevoke(e *env, file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke TOKEN-ID",
		Short: "Remove a token; the streams that it opened end",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("tapedeck token revoke takes the id of a token; see: tapedeck token ls")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if strings.HasPrefix(args[0], tokens.Prefix) {
				return tapedeck.Errorf(tapedeck.Invalid, "this is a token and not the id of one").WithHint("tapedeck token ls shows the ids")
			}
			if err := tokens.Revoke(*file, args[0]); err != nil {
				return err
			}
			if err := e.recordToken(audit.TokenRevoke, args[0], ""); err != nil {
				return tapedeck.Errorf(tapedeck.Unavailable, "%s was revoked, and that is not in the audit log: %w", args[0], err)
			}
			return e.printDone(map[string]string{"revoked": args[0]}, "revoked %s", terminal.Clean(args[0]))
		},
	}
}
