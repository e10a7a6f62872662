package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
	"github.com/frifs/frifs/nodes"
)

// leastPoll is the shortest --poll-interval.
const leastPoll = 100 * time.Millisecond

// pollFlag adds the flag of commands that serve a tree for long.
func (t *target) pollFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&t.poll, "poll-interval", 10*time.Second, "look for new versions, tags and branches so often; with a selector never")
}

func newRefreshCmd() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "refresh MOUNTPOINT",
		Short: "Have a mount look for new versions at once",
		Long: `Has the frifs mount at MOUNTPOINT look for new versions, tags and branches now, and says which
version is the newest when they show. Whoever may read the mount may ask; looks that were asked for
are a second apart. It is the same as reading MOUNTPOINT/.frifs/refresh, a file that no listing
shows. A mount that is pinned to one version has nothing to look for.`,
		Example: `  frifs refresh /mnt/t
  jq .latest_version /mnt/t/.frifs/refresh    # the same without frifs`,
		Args: args(1, 1, "MOUNTPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usagef("--timeout: %v is not positive", timeout)
			}
			abs, err := fs.Mounted(args[0])
			if err != nil {
				return explainPath(args[0], err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			begun := time.Now()
			a, err := askRefresh(ctx, abs)
			if err == nil && a.Looked.Before(begun) && a.Pinned == nil {
				a, err = askRefresh(ctx, abs) // that was the answer to somebody else, who asked a moment ago
			}
			if err != nil {
				return err
			}
			if a.Error != nil {
				return fault.New("refresh", abs, fault.Unavailable, "%s; the mount shows what it showed before", a.Error.Message)
			}
			fmt.Fprintln(cmd.OutOrStdout(), a)
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait for the answer")
	return cmd
}

// refreshed is .frifs/refresh.
type refreshed struct {
	Latest  *uint64   `json:"latest_version"`
	Before  *uint64   `json:"before"`
	Changed bool      `json:"changed"`
	Pinned  *uint64   `json:"pinned_version"`
	Looked  time.Time `json:"looked_at"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (r refreshed) String() string {
	number := func(v *uint64) string {
		if v == nil {
			return "no version"
		}
		return "version " + strconv.FormatUint(*v, 10)
	}
	switch {
	case r.Pinned != nil:
		return "pinned to " + number(r.Pinned)
	case number(r.Latest) != number(r.Before):
		return number(r.Latest) + " is the newest; it was " + number(r.Before)
	case r.Changed:
		return number(r.Latest) + " is the newest still, but the versions have changed: manifests were replaced, or older versions came or went"
	}
	return number(r.Latest) + " is the newest; nothing has changed"
}

// askRefresh reads the file that has the mount look. A mount whose server hangs does not hang the command.
func askRefresh(ctx context.Context, mountpoint string) (refreshed, error) {
	const op = "refresh"
	type answer struct {
		b   []byte
		err error
	}
	done := make(chan answer, 1)
	go func() {
		b, err := os.ReadFile(filepath.Join(mountpoint, ".frifs", "refresh"))
		done <- answer{b, err}
	}()
	var r refreshed
	select {
	case a := <-done:
		if a.err != nil {
			return r, fault.Wrap(op, mountpoint, a.err)
		}
		if err := json.Unmarshal(a.b, &r); err != nil {
			return r, fault.New(op, mountpoint, fault.Corrupt, "the mount gave an answer that is none: %w", err)
		}
		return r, nil
	case <-ctx.Done():
		return r, fault.New(op, mountpoint, fault.KindOf(ctx.Err()), "the mount has not answered: %w", ctx.Err())
	}
}

// refresh has a tree look at once; what it finds shows by itself.
func refresh(ctx context.Context, tree *nodes.Tree, log *slog.Logger) {
	if err := tree.Refresh(ctx); err != nil && ctx.Err() == nil {
		log.LogAttrs(ctx, fault.KindOf(err).Level(), "looking for new versions failed", slog.Any("error", err))
	}
}

// logChange writes what a look has found.
func logChange(ctx context.Context, log *slog.Logger, c nodes.Change) {
	attrs := []slog.Attr{slog.String("path", "/"+c.Dir)}
	list := func(name string, versions []uint64) {
		const most = 20
		if len(versions) == 0 {
			return
		}
		var words []string
		for _, v := range versions[:min(len(versions), most)] {
			words = append(words, strconv.FormatUint(v, 10))
		}
		text := strings.Join(words, " ")
		if n := len(versions) - most; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		attrs = append(attrs, slog.String(name, text))
	}
	list("new", c.Added)
	list("cleaned_up", c.Removed)
	list("replaced", c.Replaced)
	if c.Now != nil {
		attrs = append(attrs, slog.Uint64("latest", *c.Now))
	}
	if len(c.Refs) > 0 {
		attrs = append(attrs, slog.Int("tags_and_branches", len(c.Refs)))
	}
	log.LogAttrs(ctx, slog.LevelInfo, "the table has changed", attrs...)
}
