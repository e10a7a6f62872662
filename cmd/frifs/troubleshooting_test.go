package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/internal/testdata"
)

// TestTroubleshootingQuotes checks docs/TROUBLESHOOTING.md against the product: each message in a block is one that the
// sources print, each command exists and has the flags that it is shown with.
func TestTroubleshootingQuotes(t *testing.T) {
	root, err := testdata.Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "docs/TROUBLESHOOTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	source := sources(t, root)
	if n := len(regexp.MustCompile(`(?m)^### \d+\. `).FindAllString(doc, -1)); n != 15 {
		t.Errorf("%d failures are numbered, not 15", n)
	}
	for section := range strings.SplitSeq(doc, "\n### ") {
		if strings.HasPrefix(section, "# ") {
			continue
		}
		title, body, _ := strings.Cut(section, "\n")
		for _, part := range []string{"**You see**", "**Why**", "**Do**"} {
			if !strings.Contains(body, part) {
				t.Errorf("%s: nothing about %s", title, part)
			}
		}
	}
	messages := 0
	blocks := strings.Split(doc, "\n```\n")
	for i := 1; i < len(blocks); i += 2 {
		for line := range strings.Lines(blocks[i]) {
			messages++
			for fixed := range strings.SplitSeq(strings.TrimSpace(line), "…") {
				if fixed = strings.Trim(fixed, " ()"); len(fixed) > 3 && !strings.Contains(source, fixed) {
					t.Errorf("no source prints %q of %q", fixed, line)
				}
			}
		}
	}
	commands := 0
	for _, m := range regexp.MustCompile("`frifs ([^`]+)`").FindAllStringSubmatch(doc, -1) {
		commands++
		words := strings.Fields(m[1])
		cmd, rest, err := newRoot().Find(words[:1])
		if err != nil || len(rest) > 0 {
			t.Errorf("there is no command %q", m[1])
			continue
		}
		hasFlags(t, cmd, m[1])
	}
	mount, _, err := newRoot().Find([]string{"mount"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`(--[a-z-]+[^`]*)`").FindAllStringSubmatch(doc, -1) {
		if !strings.HasPrefix(m[1], "--lazy") {
			hasFlags(t, mount, m[1])
		}
	}
	if messages < 20 || commands < 10 {
		t.Errorf("only %d messages and %d commands were found", messages, commands)
	}
}

// hasFlags checks that the command has every flag of a command line.
func hasFlags(t *testing.T, cmd *cobra.Command, line string) {
	t.Helper()
	for word := range strings.FieldsSeq(line) {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if strings.HasPrefix(word, "--") && cmd.Flags().Lookup(name) == nil {
			t.Errorf("%s: %s has no flag --%s", line, cmd.Name(), name)
		}
	}
}

// sources is the text of all sources that are not tests, with the name of the device where it is joined to others.
func sources(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"cmd", "fs", "nodes", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			b.WriteString(strings.ReplaceAll(string(text), `deviceFile + "`, `"/dev/fuse`))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
