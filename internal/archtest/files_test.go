package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// maxLines is where a file no longer fits in a head. About 400 is what we aim at.
const maxLines = 600

func TestFilesAreSmall(t *testing.T) {
	for _, s := range sources(t) {
		if !s.generated && s.lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", s.path, s.lines, maxLines)
		}
	}
}

func TestEveryPackageHasADoc(t *testing.T) {
	has := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		_, small := helper(s.pkg) // may say it in any file
		has[s.pkg] = has[s.pkg] || (small || strings.HasSuffix(s.path, "/doc.go")) && s.file.Doc != nil
	}
	for pkg, ok := range has {
		if !ok {
			t.Errorf("%s has no doc.go with a package comment", pkg)
		}
	}
}

// citation matches what comments write: docs/FORMAT.md, "Row map".
var citation = regexp.MustCompile(`docs/([A-Z]+)\.md,\s+((?:(?:,|and|\s)*"[^"]+")+)`)
var quoted = regexp.MustCompile(`"([^"]+)"`)

func TestCitedSectionsExist(t *testing.T) {
	root, err := testdata.Root()
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]string{} // document → its headings, each on a line
	cited := 0
	for _, s := range sources(t) {
		for _, c := range s.file.Comments {
			text := strings.Join(strings.Fields(c.Text()), " ")
			for _, m := range citation.FindAllStringSubmatch(text, -1) {
				doc := m[1]
				if _, ok := headings[doc]; !ok {
					b, err := os.ReadFile(filepath.Join(root, "docs", doc+".md"))
					if err != nil {
						t.Errorf("%s cites docs/%s.md: %v", s.path, doc, err)
					}
					for line := range strings.Lines(string(b)) {
						if strings.HasPrefix(line, "#") {
							headings[doc] += strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "# "))) + "\n"
						}
					}
				}
				for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
					cited++
					if !strings.Contains("\n"+headings[doc], "\n"+strings.ToLower(q[1])+"\n") {
						t.Errorf("%s cites docs/%s.md, %q: there is no such section", s.path, doc, q[1])
					}
				}
			}
		}
	}
	if cited == 0 {
		t.Error("no citation found: the pattern no longer matches how comments cite")
	}
}

// docs/SEMANTICS.md names the tests that check its statements.
func TestNamedTestsExist(t *testing.T) {
	root, err := testdata.Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "docs", "SEMANTICS.md"))
	if err != nil {
		t.Fatal(err)
	}
	var exist []string
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test {
				exist = append(exist, f.Name.Name)
			}
		}
	}
	named := regexp.MustCompile(`Test[A-Z]\w*`).FindAllString(string(b), -1)
	if len(named) < 10 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, n := range named {
		if !slices.Contains(exist, n) {
			t.Errorf("docs/SEMANTICS.md names %s: there is no such test", n)
		}
	}
	// Each statement has a number of its own, and ends with its tests.
	next := 1
	for _, m := range regexp.MustCompile(`(?m)^(\d+)\. (.*)$`).FindAllStringSubmatch(string(b), -1) {
		if m[1] != strconv.Itoa(next) {
			t.Errorf("docs/SEMANTICS.md: statement %s stands where %d has to", m[1], next)
		}
		if !regexp.MustCompile(`\[Test\w+(, Test\w+)*\]$`).MatchString(m[2]) {
			t.Errorf("docs/SEMANTICS.md: statement %s names no test", m[1])
		}
		next++
	}
}

func TestNoUnfinishedWork(t *testing.T) {
	marker := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	for _, s := range sources(t) {
		for _, c := range s.file.Comments {
			if m := marker.FindString(c.Text()); m != "" && !strings.HasSuffix(s.path, "archtest/files_test.go") {
				t.Errorf("%s: a comment says %s", s.path, m)
			}
		}
	}
}
