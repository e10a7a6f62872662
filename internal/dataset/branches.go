package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// MainBranch is how the main line is called where a branch has to be named; no branch can have this name.
const MainBranch = "main"

// Branch is what the file of a branch says. What older releases did not record is nil.
type Branch struct {
	Parent        string // "" = the main line
	ParentVersion uint64 // where it forked: also the number of its own first version
	Created       *time.Time
	ManifestSize  *uint64 // bytes, of the parent's manifest
	Forks         []Fork  // the way from the main line to this branch
}

// Fork is one step of the way from the main line to a branch.
type Fork struct {
	Version uint64
	ID      string // 32 hex digits
}

// Branches lists the branches by name: those with a file below _refs/branches, and those that have only a directory
// below tree/, since the file is written last (Ref.File is "" then). No file is read. One list request is made for each
// directory below _refs/branches and tree/ that may be part of a branch's name.
func (d *Dataset) Branches(ctx context.Context) ([]Ref, error) {
	refs, err := d.listRefs(ctx, branchesDir, maxRefDepth)
	if err != nil {
		return nil, err
	}
	dirs, err := d.branchDirs(ctx)
	if err != nil {
		return nil, err
	}
	have := make(map[string]bool, len(refs))
	for _, r := range refs {
		have[r.Name] = true
	}
	for _, name := range dirs {
		if !have[name] {
			refs = append(refs, Ref{Name: name})
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	return refs, nil
}

// branchDirs finds the directories below tree/ that hold a _versions directory, by their names relative to tree/.
func (d *Dataset) branchDirs(ctx context.Context) ([]string, error) {
	var out []string
	asked := 0
	level := []string{treeDir}
	for depth := 0; len(level) > 0 && depth <= maxRefDepth && asked < maxRefDirs; depth++ {
		level = level[:min(len(level), maxRefDirs-asked)]
		asked += len(level)
		listings, err := d.listAll(ctx, level)
		if err != nil {
			return nil, err
		}
		var next []string
		for i, objects := range listings {
			dir := level[i]
			dataset := slices.ContainsFunc(objects, func(o store.Object) bool { return o.Dir && o.Name == dir+"/"+versionsDir })
			if dataset && dir != treeDir {
				out = append(out, strings.TrimPrefix(dir, treeDir+"/"))
			}
			for _, o := range objects {
				if o.Dir && !(dataset && ownDir(o.Name[len(dir)+1:])) {
					next = append(next, o.Name)
				}
			}
		}
		level = next
	}
	return out, nil
}

// listAll lists directories, some at a time. One that is not there or may not be listed has nothing.
func (d *Dataset) listAll(ctx context.Context, dirs []string) ([][]store.Object, error) {
	const atATime = 16
	out := make([][]store.Object, len(dirs))
	errs := make([]error, len(dirs))
	slots := make(chan struct{}, atATime)
	var wg sync.WaitGroup
	for i, dir := range dirs {
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			out[i], errs[i] = d.st.List(ctx, dir)
		}()
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil && !tolerable(err) {
			return nil, fault.Wrap("dataset.List", store.Join(d.URI(), dirs[i]), err)
		}
	}
	return out, nil
}

// ownDir reports whether a directory with this name belongs to a dataset itself, so that no branch is below it.
func ownDir(name string) bool { return name == dataDir || strings.HasPrefix(name, "_") }

// Branch reads the file of a branch. Errors: fault.NotFound where there is none, fault.Corrupt, fault.TooLarge, and the
// store's.
func (d *Dataset) Branch(ctx context.Context, ref Ref) (*Branch, error) {
	if ref.File == "" {
		return nil, fault.New("dataset.Branch", store.Join(d.URI(), branchFile(ref.Name)), fault.NotFound,
			"the branch has a directory but no file in %s: its creation did not finish, or its deletion", branchesDir)
	}
	return readRef(ctx, d, ref, parseBranch)
}

// branchFile is the file that Lance writes for a branch.
func branchFile(name string) string {
	return branchesDir + "/" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(name) + refSuffix
}

func parseBranch(b []byte) (*Branch, error) {
	m, err := parseMembers(b)
	if err != nil {
		return nil, err
	}
	out := &Branch{
		Created:      m.time("createAt", "create_at", "createdAt", "created_at"),
		ManifestSize: m.size("manifestSize", "manifest_size"),
	}
	if out.Parent, err = m.branch("parentBranch", "parent_branch"); err != nil {
		return nil, err
	}
	if out.ParentVersion, err = m.number("parentVersion", "parent_version"); err != nil {
		return nil, err
	}
	if v, ok := m.get("identifier"); ok {
		if out.Forks, err = parseForks(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseForks(v json.RawMessage) ([]Fork, error) {
	var id struct {
		Mapping []json.RawMessage `json:"version_mapping"`
		Camel   []json.RawMessage `json:"versionMapping"`
	}
	if err := json.Unmarshal(v, &id); err != nil {
		return nil, fmt.Errorf("\"identifier\" is not {\"version_mapping\": [[version, id], ...]}: %s", shorten(v))
	}
	if id.Mapping == nil {
		id.Mapping = id.Camel
	}
	forks := make([]Fork, 0, len(id.Mapping))
	for _, p := range id.Mapping {
		var f Fork
		pair := []any{&f.Version, &f.ID}
		if err := json.Unmarshal(p, &pair); err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("\"identifier\" has a step that is no pair of a version and an id: %s", shorten(p))
		}
		forks = append(forks, f)
	}
	return forks, nil
}

// OpenBranch opens the dataset of a branch; "" and MainBranch are d itself. It shares the caches of d, and d's tree is
// what its bases may reach. Errors: fault.NotFound for a branch without a directory, fault.Corrupt for a name that leads
// elsewhere, and the store's.
func (d *Dataset) OpenBranch(ctx context.Context, name string) (*Dataset, error) {
	if name == "" || name == MainBranch {
		return d, nil
	}
	const op = "dataset.OpenBranch"
	dir := treeDir + "/" + name
	if err := store.CheckName(dir); err != nil {
		return nil, fault.New(op, d.URI(), fault.Corrupt, "the branch name %q is no path that stays inside tree/", name)
	}
	b, err := open(ctx, d.st.Sub(dir), d.opt, d.cache)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.New(op, store.Join(d.URI(), dir), fault.NotFound,
			"the branch %q has no directory with versions: its data was deleted or was never written", name)
	}
	if err != nil {
		return nil, err
	}
	b.main, b.branch = d, name
	return b, nil
}

// Main returns the dataset that the branch belongs to, if it was opened by OpenBranch, and the branch's name.
func (d *Dataset) Main() (main *Dataset, branch string) { return d.main, d.branch }
