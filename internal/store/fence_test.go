package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

func TestKindOfOS(t *testing.T) {
	for err, want := range map[error]fault.Kind{
		syscall.ENOENT:       fault.NotFound,
		syscall.ENOTDIR:      fault.NotFound,
		syscall.ENAMETOOLONG: fault.NotFound,
		syscall.EACCES:       fault.Denied,
		syscall.EPERM:        fault.Denied,
		syscall.ELOOP:        fault.Denied,
		syscall.EISDIR:       fault.Invalid,
		syscall.ESTALE:       fault.Stale,
		syscall.ETIMEDOUT:    fault.TimedOut,
		syscall.EIO:          fault.Unavailable,
		syscall.EMFILE:       fault.Unavailable,
		fs.ErrNotExist:       fault.NotFound,
	} {
		wrapped := &os.PathError{Op: "open", Path: "/x", Err: err}
		if got := kindOfOS(fmt.Errorf("while testing: %w", wrapped)); got != want {
			t.Errorf("%v: kind %v, want %v", err, got, want)
		}
	}
}

func TestFailureTellsTheCallersEndFromOurBound(t *testing.T) {
	live := context.Background()
	dead, cancel := context.WithCancel(live)
	cancel()
	late, cancel := context.WithDeadline(live, time.Now().Add(-time.Second))
	defer cancel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		name         string
		caller, call context.Context
		kind         fault.Kind
	}{
		{"caller cancelled", dead, dead, fault.Cancelled},
		{"caller's deadline", late, late, fault.TimedOut},
		{"our bound", live, late, fault.TimedOut},
		{"neither", live, live, fault.Unavailable},
		{"no call", live, nil, fault.Unavailable},
	} {
		if err := failure(tt.caller, tt.call, "op", "uri", time.Second, fault.Unknown, broken); fault.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want kind %v", tt.name, err, tt.kind)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		root, p string
		want    bool
	}{
		{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/b", "/a", false}, {"/", "/x", true},
	} {
		if got := Within(tt.root, tt.p); got != tt.want {
			t.Errorf("Within(%q, %q) = %t, want %t", tt.root, tt.p, got, tt.want)
		}
	}
}
