package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// layers says which packages of the project a package may import. A package that is not listed may not exist: whoever
// adds one decides here where it stands. Lower layers come first, and an entry may name earlier entries only, so
// that no arrow points upwards.
var layers = []struct {
	pkg string
	may []string
}{
	{"fault", nil},
	{"internal/pb", nil},
	{"internal/testdata", nil},
	{"internal/archtest", []string{"internal/testdata"}},
	{"fri", []string{"fault"}},
	{"internal/fritest", []string{"fault", "fri"}},
	{"internal/store", []string{"fault"}},
	{"internal/spill", []string{"fault"}},
	{"internal/lancefile", []string{"fault", "internal/pb"}},
	{"internal/dataset", []string{"fault", "fri", "internal/store", "internal/pb"}},
	{"internal/addrset", []string{"fault", "fri"}},
	{"rowmap", []string{"fault", "fri", "internal/lancefile"}},
	{"translate", []string{"fault", "fri", "rowmap"}},
	{"internal/mapcsv", []string{"fault", "fri", "rowmap", "translate"}},
	{"internal/indexfile", []string{"fault", "fri", "translate", "internal/store", "internal/dataset", "internal/lancefile", "internal/addrset", "internal/spill", "internal/pb"}},
	{"nodes", []string{"fault", "fri", "rowmap", "translate", "internal/mapcsv", "internal/dataset", "internal/lancefile", "internal/indexfile", "internal/spill", "internal/pb", "internal/store"}},
	{"fs", []string{"fault", "nodes"}},
	{"serve", []string{"fault", "nodes"}},
	{"cmd/frifs", []string{"fault", "fri", "rowmap", "translate", "internal/dataset", "internal/store", "nodes", "fs", "serve"}},
	{"integration/slowmount", []string{"fault", "internal/dataset", "internal/store", "internal/store/storetest", "nodes", "fs"}},
	{"integration/stores/proxy", nil},
	{"integration", nil},
}

func TestLayersAreAnOrder(t *testing.T) {
	before := []string{"internal/store/storetest"} // a helper, which integration/slowmount may use
	for _, l := range layers {
		for _, m := range l.may {
			if !slices.Contains(before, m) {
				t.Errorf("%s may import %s, which does not stand below it", l.pkg, m)
			}
		}
		before = append(before, l.pkg)
	}
}

// helper reports whether a package only helps tests, and of which package: <package>/<name>test. It may import that
// package and what that one may import; product code may not import it.
func helper(pkg string) (of string, ok bool) {
	base := path.Base(pkg)
	return path.Dir(pkg), strings.HasSuffix(base, "test") && base != "archtest"
}

func mayImport(pkg string) (may []string, ok bool) {
	for _, l := range layers {
		if l.pkg == pkg {
			return l.may, true
		}
	}
	if of, ok := helper(pkg); ok {
		may, ok = mayImport(of)
		may = append(slices.Clone(may), of, "internal/pb")
		for _, m := range may {
			may = append(may, m+"/"+path.Base(m)+"test", "internal/lancefile/lancetest")
		}
		return may, ok
	}
	return nil, false
}

func TestImportsPointDownwards(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue // tests may look at whatever they need
		}
		may, ok := mayImport(s.pkg)
		if !ok {
			t.Errorf("%s: package %s has no place in the layers", s.path, s.pkg)
			continue
		}
		for _, imp := range s.imports {
			if own, ok := strings.CutPrefix(imp, module+"/"); ok && !slices.Contains(may, own) {
				t.Errorf("%s: %s may not import %s", s.path, s.pkg, own)
			}
		}
	}
}

// outside says which packages may import a package of another project or of the standard library (or one below it).
// What is not listed is free.
var outside = []struct {
	imp string
	by  []string
	why string
}{
	{"github.com/hanwen/go-fuse", []string{"fs"}, "one thin layer speaks to the kernel"},
	{"gocloud.dev", []string{"internal/store"}, "one interface hides the stores"},
	{"github.com/aws", []string{"internal/store"}, "one interface hides the stores"},
	{"github.com/Azure", []string{"internal/store"}, "one interface hides the stores"},
	{"cloud.google.com", []string{"internal/store"}, "one interface hides the stores"},
	{"google.golang.org/api", []string{"internal/store"}, "one interface hides the stores"},
	{"github.com/spf13/cobra", []string{"cmd/frifs"}, "flags belong to the command"},
	{"github.com/prometheus", []string{"nodes"}, "metrics are a file of the tree; decoders and stores count for themselves"},
	{"github.com/apache/arrow-go", []string{"internal/dataset", "internal/mapcsv"}, "only deletion files and tests need it"},
	{"log", []string{"fs", "cmd/frifs", "integration/slowmount", "fault"}, "libraries return errors (fault: the level of each kind)"},
	{"os", []string{"internal/store", "internal/spill", "internal/testdata", "fs", "cmd/frifs", "integration/slowmount"}, "only the store reaches files"},
	{"net/http", []string{"internal/store", "serve", "cmd/frifs", "integration/stores/proxy"}, "only the store reaches a network, and only serve answers"},
	{"unsafe", []string{"rowmap", "translate", "internal/mapcsv"}, "no input may corrupt memory (allowed: views of slices of plain numbers, for speed)"},
	{"C", nil, "no cgo"},
	{"testing", []string{"internal/testdata"}, "product code does not know that it is tested"},
}

func TestOutsideImports(t *testing.T) {
	for _, s := range sources(t) {
		if _, ok := helper(s.pkg); ok || s.test || s.generated {
			continue
		}
		for _, imp := range s.imports {
			for _, o := range outside {
				if (imp == o.imp || strings.HasPrefix(imp, o.imp+"/")) && !slices.Contains(o.by, s.pkg) {
					t.Errorf("%s imports %s: %s", s.path, imp, o.why)
				}
			}
		}
	}
}

// The public decoders must not let files, kernels or clouds into their signatures.
func TestPublicDecodersArePure(t *testing.T) {
	pure := []string{"fri", "rowmap", "translate"}
	forbidden := []string{"os", "net", "net/url", "path", "path/filepath", "io/fs", "syscall", "os/exec", "gocloud.dev", "github.com/hanwen/go-fuse"}
	for _, s := range sources(t) {
		if s.test || !slices.Contains(pure, s.pkg) {
			continue
		}
		for _, imp := range s.imports {
			for _, f := range forbidden {
				if imp == f || strings.HasPrefix(imp, f+"/") && f != "net" {
					t.Errorf("%s imports %s", s.path, imp)
				}
			}
		}
	}
}
