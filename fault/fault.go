package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Kind classifies a failure. The zero value means "not classified" and is treated like Unavailable by the table.
type Kind uint8

// The kinds of docs/DESIGN.md, "Errors".
const (
	Unknown     Kind = iota
	NotFound         // no such entry, file gone
	Stale            // was there at open, or is another file now; written "not_found" like NotFound
	Corrupt          // bytes violate the format
	Unsupported      // a version, flag, encoding or mapping that frifs does not know
	Denied           // 401/403, permissions, a base outside the allowed roots
	Invalid          // a bad name, selector or address
	TooLarge         // over a limit that protects memory
	Unavailable      // store or network down after retries
	TimedOut         // over the time bound
	Cancelled        // interrupted by the caller
	ReadOnly         // any attempt to change something
)

// Error is the error type of frifs. Op names the operation ("dataset.ReadManifest"), Path the file or URI without
// credentials (it may carry " @<byte offset>"), Kind the class and Err the cause. Op and Path may be empty.
type Error struct {
	Op   string
	Path string
	Kind Kind
	Err  error
}

// Error renders "op: path: kind: cause"; empty parts are left out, and the kind is not repeated where the cause
// already carries the same one.
func (e *Error) Error() string {
	var b strings.Builder
	for _, s := range []string{e.Op, e.Path} {
		if s != "" {
			b.WriteString(s)
			b.WriteString(": ")
		}
	}
	var inner *Error
	if e.Kind != Unknown && !(errors.As(e.Err, &inner) && inner.Kind == e.Kind) {
		b.WriteString(strings.ReplaceAll(e.Kind.String(), "_", " "))
		if e.Err != nil {
			b.WriteString(": ")
		}
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of the given kind from a format string (which may use %w).
func New(op, path string, kind Kind, format string, args ...any) error {
	return &Error{Op: op, Path: path, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Wrap adds op and path to err and keeps its kind; nil stays nil.
func Wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Path: path, Kind: KindOf(err), Err: err}
}

// KindOf returns the kind of the outermost *Error in err's chain that has one; errors of context and io/fs are
// mapped to the kind they mean. nil and unclassified errors give Unknown.
func KindOf(err error) Kind {
	for e := err; e != nil; {
		var fe *Error
		if !errors.As(e, &fe) {
			break
		}
		if fe.Kind != Unknown {
			return fe.Kind
		}
		e = fe.Err
	}
	switch {
	case err == nil:
		return Unknown
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return Denied
	case errors.Is(err, fs.ErrInvalid):
		return Invalid
	}
	return Unknown
}

// Is reports whether err is of the given kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
