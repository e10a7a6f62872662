package main

import (
	"context"
	"fmt"
	"strconv"
)

// describe says what is served: the URI and its versions.
func (s *source) describe(ctx context.Context) string {
	if s.ds == nil {
		return s.uri + " (a database)"
	}
	numbers, err := versionNumbers(ctx, s.root)
	switch {
	case err != nil || len(numbers) == 0:
		return s.uri
	case len(numbers) == 1:
		return s.uri + " (version " + strconv.FormatUint(numbers[0], 10) + ")"
	}
	return fmt.Sprintf("%s (%d versions, latest %d)", s.uri, len(numbers), numbers[len(numbers)-1])
}

// advice is one line about what the newest version means for Lance itself; "" where there is nothing to say.
func (s *source) advice(ctx context.Context) string {
	if s.ds == nil {
		return ""
	}
	var v struct {
		Advice []string
		FRI    struct{ Errors int } `json:"fri"`
	}
	if err := readJSON(ctx, s.root, "latest/version.json", &v); err != nil {
		return "the newest version cannot be read: " + plain(err)
	}
	more := func(n int, where string) string {
		if n <= 0 {
			return ""
		}
		return fmt.Sprintf(" (%d more in %s)", n, where)
	}
	switch {
	case len(v.Advice) > 0:
		return "note: " + v.Advice[0] + more(len(v.Advice)-1, "latest/version.json, \"advice\"")
	case v.FRI.Errors > 0:
		return fmt.Sprintf("note: %s in latest/fri/history.json", countWord(v.FRI.Errors, "error"))
	}
	return ""
}
