package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// versionValue is the flag --version N; unset is nil.
type versionValue struct{ n *uint64 }

func (v *versionValue) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not a version number", s)
	}
	v.n = &n
	return nil
}

func (v *versionValue) String() string {
	if v.n == nil {
		return ""
	}
	return strconv.FormatUint(*v.n, 10)
}

func (v *versionValue) Type() string { return "N" }

// timeValue is the flag --asof T.
type timeValue struct{ t time.Time }

// timeLayouts are the forms of a time, the most exact first. A time without a zone is UTC.
var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04",
}

func (v *timeValue) Set(s string) error {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			v.t = t.UTC()
			return nil
		}
	}
	// A day alone means its end: everything that happened on it counts.
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		v.t = t.Add(24*time.Hour - time.Nanosecond).UTC()
		return nil
	}
	return fmt.Errorf("%q is not a time; write 2026-05-04T12:30:00Z, 2026-05-04T12:30 (UTC) or 2026-05-04 (its end, UTC)", s)
}

func (v *timeValue) String() string {
	if v.t.IsZero() {
		return ""
	}
	return v.t.Format(time.RFC3339Nano)
}

func (v *timeValue) Type() string { return "TIME" }

// sizeValue is a number of bytes with an optional unit.
type sizeValue int64

var sizeUnits = []struct {
	suffix string
	factor int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1}, {"", 1},
}

func (v *sizeValue) Set(s string) error {
	for _, u := range sizeUnits {
		if len(s) < len(u.suffix) || !strings.EqualFold(s[len(s)-len(u.suffix):], u.suffix) {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(s[:len(s)-len(u.suffix)]), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.factor {
			break
		}
		*v = sizeValue(n * u.factor)
		return nil
	}
	return fmt.Errorf("%q is not a size; write 1048576, 512KiB or 1GiB", s)
}

func (v *sizeValue) String() string {
	n := int64(*v)
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		for _, s := range sizeUnits {
			if s.suffix == u && n >= s.factor && n%s.factor == 0 {
				return strconv.FormatInt(n/s.factor, 10) + u
			}
		}
	}
	return strconv.FormatInt(n, 10)
}

func (v *sizeValue) Type() string { return "SIZE" }

// choice is a flag that takes one of some words; the first is the default.
type choice struct {
	word  string
	words []string
}

func newChoice(words ...string) *choice { return &choice{word: words[0], words: words} }

func (c *choice) Set(s string) error {
	for _, w := range c.words {
		if s == w {
			c.word = w
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", s, strings.Join(c.words, ", "))
}

func (c *choice) String() string { return c.word }

func (c *choice) Type() string { return strings.Join(c.words, "|") }
