package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

const module = "github.com/frifs/frifs"

// source is one Go file of the project.
type source struct {
	path      string // relative to the root, slashes
	pkg       string // folder, relative to the root, slashes; "." for the root
	test      bool   // a _test.go file
	generated bool
	lines     int
	imports   []string
	file      *ast.File
}

// sources parses every Go file of the project, comments included.
func sources(t *testing.T) []source {
	t.Helper()
	root, err := testdata.Root()
	if err != nil {
		t.Fatal(err)
	}
	var all []source
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || name == "testdata" && !strings.HasSuffix(filepath.ToSlash(p), "internal/testdata") || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		s := source{path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(f), lines: strings.Count(string(text), "\n"), file: f}
		for _, i := range f.Imports {
			s.imports = append(s.imports, strings.Trim(i.Path.Value, `"`))
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d Go files found below %s", len(all), root)
	}
	return all
}
