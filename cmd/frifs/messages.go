package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
)

// wordedError says err in other words, and is of its kind.
type wordedError struct {
	text string
	err  error
}

func (w wordedError) Error() string { return w.text }
func (w wordedError) Unwrap() error { return w.err }

// plain is the message of err for a person: path, kind and cause, without the operations, which name parts of this
// program.
func plain(err error) string { return plainBelow("", err) }

// plainBelow is plain where the path parent has been written already.
func plainBelow(parent string, err error) string {
	if fe, ok := err.(*fault.Error); ok { //nolint:errorlint // each error of the chain is rendered by itself
		short := fault.Error{Path: fe.Path, Kind: fe.Kind}
		if fe.Path == parent {
			short.Path = ""
		} else {
			parent = fe.Path
		}
		if fe.Err != nil {
			short.Err = wordedError{plainBelow(parent, fe.Err), fe.Err}
		}
		return short.Error()
	}
	text := err.Error()
	var inner []error
	switch x := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() error }:
		inner = []error{x.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = x.Unwrap()
	}
	for _, e := range inner {
		if e != nil && e.Error() != "" {
			text = strings.Replace(text, e.Error(), plainBelow(parent, e), 1)
		}
	}
	return text
}

// message is what report prints of err: plain, unless the command runs with --log-level debug.
func message(cmd *cobra.Command, err error) string {
	if cmd != nil {
		if f := cmd.Flags().Lookup("log-level"); f != nil && f.Value.String() == "debug" {
			return err.Error()
		}
	}
	return plain(err)
}

// explainPath replaces err, an error about what should be a directory at path on this machine, if there is no such
// directory. The disk is looked at only now, so that a command that goes well does not wait for it twice.
func explainPath(path string, err error) error {
	fi, serr := os.Stat(path)
	var text string
	switch {
	case errors.Is(serr, os.ErrNotExist):
		text = "does not exist"
	case serr != nil:
		return err
	case fi.Mode().IsRegular():
		text = "is a file, not a directory"
	case !fi.IsDir():
		text = "is not a directory"
	default:
		return err
	}
	return wordedError{path + " " + text, fault.New("", path, fault.NotFound, "%s: %w", text, err)}
}

// explainURI is explainPath for the URI of a dataset; err stays where that is not on this machine, or was not the
// reason.
func explainURI(ctx context.Context, uri string, err error) error {
	path := uri
	if scheme, rest, ok := strings.Cut(uri, "://"); ok {
		if scheme != "file" {
			return err
		}
		path = rest
	}
	if ctx.Err() != nil || path == "" || fault.Is(err, fault.TimedOut) || fault.Is(err, fault.Denied) {
		return err
	}
	return explainPath(path, err)
}

// olderVersion adds to err, which a command got about the newest version, that an older one may do, if what is wrong
// is the manifest of the newest.
func (t *target) olderVersion(ctx context.Context, s *source, err error) error {
	if err == nil || ctx.Err() != nil || t.pinned() {
		return err
	}
	switch fault.KindOf(err) {
	case fault.Corrupt, fault.Unsupported, fault.TooLarge:
	default:
		return err
	}
	var doc struct{}
	if readJSON(ctx, s.root, "latest/version.json", &doc) == nil {
		return err
	}
	numbers, lerr := versionNumbers(ctx, s.root)
	if lerr != nil || len(numbers) < 2 {
		return err
	}
	return fmt.Errorf("%w; an older version may work: --version %d", err, numbers[len(numbers)-2])
}
