package dataset

import (
	"fmt"
	"strings"
	"time"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/pb"
)

// Manifest is one decoded manifest file. It is read-only and shared between callers.
type Manifest struct {
	Ref          VersionRef
	PB           *pb.Manifest // without its fragments, see Fragments; unknown fields are kept in the messages
	Indices      []*Index     // the whole index section, raw; nil if there is none or IndexErr
	IndexErr     error        // the index section exists but cannot be read; everything that needs indices is unknown
	Warnings     []string     // what is odd but harmless, for people
	Major, Minor uint16       // of the file's trailer
	Bytes        int64        // size of the file

	where     string // path of the file, for messages
	fragments []*Fragment
	live      map[fri.FragID]*Fragment
	inline    *inlineTransaction // nil: none
	memory    int64
}

// Version is the number in the file name; the number inside the file may differ (a warning then).
func (m *Manifest) Version() uint64 { return m.Ref.Version }

// Memory is about what the manifest takes in memory, in bytes.
func (m *Manifest) Memory() int64 { return m.memory }

// Path is the URI of the manifest file.
func (m *Manifest) Path() string { return m.where }

// Branch is the branch the version is on, "" for the main line.
func (m *Manifest) Branch() string { return m.PB.GetBranch() }

// Timestamp is the writer's clock at the commit, UTC; false if it is absent or outside the years 1 to 9999.
func (m *Manifest) Timestamp() (time.Time, bool) {
	ts := m.PB.GetTimestamp()
	const first, end = -62135596800, 253402300800 // years 1 and 10000
	if ts == nil || ts.GetSeconds() < first || ts.GetSeconds() >= end || ts.GetNanos() < 0 || ts.GetNanos() > 999_999_999 {
		return time.Time{}, false
	}
	return time.Unix(ts.GetSeconds(), int64(ts.GetNanos())).UTC(), true
}

// Fragments returns the fragments in manifest order, duplicates included.
func (m *Manifest) Fragments() []*Fragment { return m.fragments }

// Live returns the fragments by id; of duplicates the first (they are marked). The map must not be changed.
func (m *Manifest) Live() map[fri.FragID]*Fragment { return m.live }

// Rows sums the live rows of all fragments; false if a fragment's count is unknown.
func (m *Manifest) Rows() (uint64, bool) {
	var n uint64
	for _, f := range m.fragments {
		live := f.LiveRows()
		if live == nil {
			return 0, false
		}
		n += *live
	}
	return n, true
}

// ReaderFlags and WriterFlags explain the two feature-flag words.
func (m *Manifest) ReaderFlags() []Flag { return Flags(m.PB.GetReaderFeatureFlags()) }

// WriterFlags explains the writer's word.
func (m *Manifest) WriterFlags() []Flag { return Flags(m.PB.GetWriterFeatureFlags()) }

// StableRowIDs reports whether the table has stable row ids.
func (m *Manifest) StableRowIDs() bool { return m.PB.GetReaderFeatureFlags()&FlagStableRowIDs != 0 }

// StorageVersion is the data file format version ("2.1"). Old manifests do not record it: then it is the one that all
// data files share. inferred tells these cases apart; "" means unknown.
func (m *Manifest) StorageVersion() (version string, inferred bool) {
	if v := m.PB.GetDataFormat().GetVersion(); v != "" {
		return v, false
	}
	for _, f := range m.fragments {
		for _, df := range f.Files() {
			v := FileVersion(df.GetFileMajorVersion(), df.GetFileMinorVersion())
			if v == "" || version != "" && v != version {
				return "", true
			}
			version = v
		}
	}
	return version, true
}

// FileVersion names the format of a data file by the numbers of its manifest entry, "" if they are none of a release.
func FileVersion(major, minor uint32) string {
	switch {
	case major == 0 && minor <= 2:
		return "0.1"
	case major == 0 && minor == 3, major == 2 && minor == 0:
		return "2.0"
	case major == 2 && minor <= 3:
		return fmt.Sprintf("2.%d", minor)
	}
	return ""
}

// WriterVersion is the library and version that wrote the manifest ("lance 12.0.0"), "" if it is not recorded.
func (m *Manifest) WriterVersion() string {
	w := m.PB.GetWriterVersion()
	if w == nil {
		return ""
	}
	v := w.GetVersion()
	if w.GetPrerelease() != "" {
		v += "-" + w.GetPrerelease()
	}
	if w.GetBuildMetadata() != "" {
		v += "+" + w.GetBuildMetadata()
	}
	return strings.TrimSpace(w.GetLibrary() + " " + v)
}

// IndicesNamed returns the entries of one name in manifest order.
func (m *Manifest) IndicesNamed(name string) []*Index {
	var out []*Index
	for _, x := range m.Indices {
		if x.Name == name {
			out = append(out, x)
		}
	}
	return out
}

// FieldPath returns the dotted column name of a field id, and whether this manifest's schema has it. A literal dot or
// backquote in a name is not escaped.
func (m *Manifest) FieldPath(id int32) (string, bool) {
	byID := make(map[int32]*pb.Field, len(m.PB.GetFields()))
	for _, f := range m.PB.GetFields() {
		byID[f.GetId()] = f
	}
	f, ok := byID[id]
	if !ok {
		return "", false
	}
	path := f.GetName()
	for range byID { // bounds a cycle of parents
		if f.GetParentId() < 0 {
			break
		}
		if f, ok = byID[f.GetParentId()]; !ok {
			break
		}
		path = f.GetName() + "." + path
	}
	return path, true
}
