//go:build !linux

package main

import (
	"errors"
	"os"
)

func syncAll(f *os.File) error { return f.Sync() }

func linkOpen(f *os.File, name string) error { return linkByPath(f, name) }

func shareBlocks(_, _ *os.File, _ int64) error { return errors.ErrUnsupported }

func sharesBlocks(_, _ string) bool { return false }
