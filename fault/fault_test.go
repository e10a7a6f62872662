package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"syscall"
	"testing"
)

// TestTable holds the one table against docs/DESIGN.md, "Errors".
func TestTable(t *testing.T) {
	for _, tc := range []struct {
		kind  Kind
		name  string
		errno syscall.Errno
		exit  int
		level slog.Level
	}{
		{NotFound, "not_found", syscall.ENOENT, 1, slog.LevelInfo},
		{Stale, "not_found", syscall.ESTALE, 1, slog.LevelInfo},
		{Corrupt, "corrupt", syscall.EIO, 1, slog.LevelError},
		{Unsupported, "unsupported", syscall.ENOTSUP, 1, slog.LevelWarn},
		{Denied, "denied", syscall.EACCES, 1, slog.LevelWarn},
		{Invalid, "invalid", syscall.EINVAL, 2, slog.LevelInfo},
		{TooLarge, "too_large", syscall.EFBIG, 1, slog.LevelWarn},
		{Unavailable, "unavailable", syscall.EIO, 1, slog.LevelError},
		{TimedOut, "timed_out", syscall.ETIMEDOUT, 1, slog.LevelWarn},
		{Cancelled, "cancelled", syscall.EINTR, 130, slog.LevelDebug},
		{ReadOnly, "read_only", syscall.EROFS, 1, slog.LevelInfo},
		{Unknown, "unavailable", syscall.EIO, 1, slog.LevelError},
		{Kind(200), "unavailable", syscall.EIO, 1, slog.LevelError},
	} {
		if got := tc.kind.String(); got != tc.name {
			t.Errorf("kind %d is named %q, want %q", tc.kind, got, tc.name)
		}
		if got := tc.kind.Errno(); got != tc.errno {
			t.Errorf("%s: errno %v, want %v", tc.name, got, tc.errno)
		}
		if got := tc.kind.ExitCode(); got != tc.exit {
			t.Errorf("%s: exit code %d, want %d", tc.name, got, tc.exit)
		}
		if got := tc.kind.Level(); got != tc.level {
			t.Errorf("%s: level %v, want %v", tc.name, got, tc.level)
		}
	}
}

func TestKindOf(t *testing.T) {
	corrupt := New("fri.Open", "details.binpb @12", Corrupt, "%d is too many", 7)
	for _, tc := range []struct {
		name string
		err  error
		want Kind
	}{
		{"nil", nil, Unknown},
		{"plain", errors.New("x"), Unknown},
		{"its own", corrupt, Corrupt},
		{"wrapped", fmt.Errorf("more: %w", Wrap("nodes.Open", "a", corrupt)), Corrupt},
		{"the outer kind wins", New("store.Open", "", NotFound, "gone: %w", corrupt), NotFound},
		{"no kind outside", &Error{Op: "a", Err: corrupt}, Corrupt},
		{"cancelled", Wrap("a", "", context.Canceled), Cancelled},
		{"deadline", fmt.Errorf("b: %w", context.DeadlineExceeded), TimedOut},
		{"not there", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, NotFound},
		{"not allowed", fs.ErrPermission, Denied},
		{"not valid", fs.ErrInvalid, Invalid},
	} {
		if got := KindOf(tc.err); got != tc.want {
			t.Errorf("%s: got kind %d, want %d", tc.name, got, tc.want)
		}
		if got := Is(tc.err, tc.want); got != (tc.err != nil) {
			t.Errorf("%s: Is says %v", tc.name, got)
		}
	}
}

func TestMessage(t *testing.T) {
	corrupt := New("fri.Open", "details.binpb @12", Corrupt, "%d is too many", 7)
	for _, tc := range []struct {
		err  error
		want string
	}{
		{corrupt, "fri.Open: details.binpb @12: corrupt: 7 is too many"},
		{Wrap("nodes.Open", "a/b", corrupt), "nodes.Open: a/b: fri.Open: details.binpb @12: corrupt: 7 is too many"},
		{New("", "", NotFound, "gone"), "not found: gone"},
		{&Error{Kind: TooLarge}, "too large"},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	if Wrap("a", "b", nil) != nil {
		t.Error("wrapping nil makes an error")
	}
	if !errors.Is(Wrap("a", "b", fs.ErrNotExist), fs.ErrNotExist) {
		t.Error("Unwrap loses the cause")
	}
}
