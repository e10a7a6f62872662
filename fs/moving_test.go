package fs

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// moving are names of the fake root that come to mean something else when the server is told so:
//
//	moving   a link to the number of the generation
//	late     there from the first generation on
//	passing  there before the first generation
//	asked    another inode at each look-up, never kept
//	slow     absent, which takes a second to find out
//	vol/N    a volatile directory with a file named after the generation
//	many/one a directory in a volatile one: kept is another inode at each look-up, about is of the generation
type moving struct {
	generation, asked, kept atomic.Int64
}

type askedFile struct{ *fakeFile }

func (askedFile) Transient() bool { return true }

func addMoving(root *fakeDir) *moving {
	m := &moving{}
	vol := newFakeDir("vol")
	vol.volatile = true
	vol.hidden = func(_ context.Context, name string) (nodes.Node, error) {
		if g := fmt.Sprint(m.generation.Load()); name == g {
			return textFile("vol/"+g, g), nil
		}
		return nil, fault.New("fake.Lookup", "vol/"+name, fault.NotFound, "no such entry")
	}
	root.add(vol, "vol")
	many, one := newFakeDir("many"), newFakeDir("many/one")
	many.volatile = true
	many.add(one, "one")
	one.hidden = func(_ context.Context, name string) (nodes.Node, error) {
		switch name {
		case "kept":
			n := m.kept.Add(1)
			return textFile(fmt.Sprintf("many/one/kept#%d", n), fmt.Sprint(n)), nil
		case "about":
			g := fmt.Sprint(m.generation.Load())
			return textFile("many/one/about#"+g, g), nil
		}
		return nil, fault.New("fake.Lookup", "many/one/"+name, fault.NotFound, "no such entry")
	}
	root.add(many, "many")
	others := root.hidden
	root.hidden = func(ctx context.Context, name string) (nodes.Node, error) {
		g := m.generation.Load()
		switch {
		case name == "moving":
			target := fmt.Sprintf("generation-%d", g)
			return &fakeLink{"moving#" + target, target}, nil
		case name == "late" && g > 0, name == "passing" && g == 0:
			return textFile(name, name+"\n"), nil
		case name == "asked":
			n := m.asked.Add(1)
			return askedFile{textFile(fmt.Sprintf("asked#%d", n), fmt.Sprint(n))}, nil
		case name == "slow":
			time.Sleep(800 * time.Millisecond)
		}
		return others(ctx, name)
	}
	return m
}

// next begins the next generation and returns the names that mean something else since.
func (m *moving) next() []nodes.Name {
	m.generation.Add(1)
	return []nodes.Name{{Name: "moving"}, {Name: "late"}, {Name: "passing"}, {Name: "slow"}, {Dir: "vol"}, {Dir: "vol", Name: "."}, {Dir: "many", Name: "*/about"}, {Dir: "vol", Name: "1"},
		{Dir: "no/such", Name: "directory"}, {Dir: "no"}, {Name: "no such name"}, {Dir: "README.txt", Name: "x"}}
}
