package dataset

import (
	"context"
	"time"
)

// Tag is what the file of a tag says. What older releases did not record is nil.
type Tag struct {
	Branch           string // "" = the main line
	Version          uint64 // on that branch; it need not be retained
	Created, Updated *time.Time
	ManifestSize     *uint64 // bytes
}

// Tags lists the tags by name, without reading them: one list request, and one for each directory below _refs/tags, which
// stores that decode the names of files make of a tag with a slash. Only the main root of a dataset has any.
func (d *Dataset) Tags(ctx context.Context) ([]Ref, error) {
	return d.listRefs(ctx, tagsDir, maxRefDepth)
}

// Tag reads a tag. Errors: fault.Corrupt, fault.TooLarge, and the store's.
func (d *Dataset) Tag(ctx context.Context, ref Ref) (*Tag, error) {
	return readRef(ctx, d, ref, parseTag)
}

func parseTag(b []byte) (*Tag, error) {
	m, err := parseMembers(b)
	if err != nil {
		return nil, err
	}
	t := &Tag{
		Created: m.time("createdAt", "created_at"), Updated: m.time("updatedAt", "updated_at"),
		ManifestSize: m.size("manifestSize", "manifest_size"),
	}
	if t.Version, err = m.number("version"); err != nil {
		return nil, err
	}
	if t.Branch, err = m.branch("branch"); err != nil {
		return nil, err
	}
	return t, nil
}
