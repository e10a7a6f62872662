package fault

import (
	"log/slog"
	"syscall"
)

// row is what one kind means outside: its name in JSON, its errno for the kernel, the exit code of the process and
// the level it is logged at.
type row struct {
	name  string
	errno syscall.Errno
	exit  int
	level slog.Level
}

// The one table: docs/DESIGN.md, "Errors".
var table = [...]row{
	Unknown:     {"unavailable", syscall.EIO, 1, slog.LevelError},
	NotFound:    {"not_found", syscall.ENOENT, 1, slog.LevelInfo},
	Stale:       {"not_found", syscall.ESTALE, 1, slog.LevelInfo},
	Corrupt:     {"corrupt", syscall.EIO, 1, slog.LevelError},
	Unsupported: {"unsupported", syscall.ENOTSUP, 1, slog.LevelWarn},
	Denied:      {"denied", syscall.EACCES, 1, slog.LevelWarn},
	Invalid:     {"invalid", syscall.EINVAL, 2, slog.LevelInfo},
	TooLarge:    {"too_large", syscall.EFBIG, 1, slog.LevelWarn},
	Unavailable: {"unavailable", syscall.EIO, 1, slog.LevelError},
	TimedOut:    {"timed_out", syscall.ETIMEDOUT, 1, slog.LevelWarn},
	Cancelled:   {"cancelled", syscall.EINTR, 130, slog.LevelDebug},
	ReadOnly:    {"read_only", syscall.EROFS, 1, slog.LevelInfo},
}

func (k Kind) row() row {
	if int(k) >= len(table) {
		k = Unknown
	}
	return table[k]
}

// String is the kind's name as it stands in JSON.
func (k Kind) String() string { return k.row().name }

// Errno is what the kernel is told.
func (k Kind) Errno() syscall.Errno { return k.row().errno }

// ExitCode is the exit code of a command that ends with an error of this kind.
func (k Kind) ExitCode() int { return k.row().exit }

// Level is the level at which an error of this kind is logged.
func (k Kind) Level() slog.Level { return k.row().level }
