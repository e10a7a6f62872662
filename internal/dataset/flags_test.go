package dataset

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// users.md R28: flags by number and name, what they mean, and whether the words agree.
func TestR28FlagsByNumberAndName(t *testing.T) {
	names := []string{"deletion_files", "stable_row_ids", "use_v2_format_deprecated", "table_config", "base_paths", "disable_transaction_file",
		"unstable_data_overlay_files", "covered_index_metadata", "mixed_data_file_versions", "frag_reuse_with_stable_row_ids", "fragment_reuse_index",
		"spilled_row_lineage", "fragment_tree", "independent_covering_fields", "managed_blobs", "non_reusable_field_ids", "zone_write_seeds", "object_metadata"}
	all := Flags(^uint64(0))
	if len(all) != 64 {
		t.Fatalf("%d flags of 64 bits", len(all))
	}
	for i, f := range all {
		want := ""
		if i < len(names) {
			want = names[i]
		}
		paired := i == 8 || i == 10 || i == 14 || i == 16
		if f.Bit != i || f.Value != 1<<i || f.Name != want || f.Note == "" || f.Paired != paired {
			t.Errorf("bit %d: %+v, want name %q, paired %t", i, f, want, paired)
		}
	}
	if len(Flags(0)) != 0 {
		t.Error("no bit, no flag")
	}
	if f := Flags(1024 | 1); len(f) != 2 || f[1].Name != "fragment_reuse_index" {
		t.Errorf("flags of 1025: %+v", f)
	}
}

func TestFlagFindingsAndRefusal(t *testing.T) {
	for _, tt := range []struct {
		name           string
		reader, writer uint64
		findings       int
		refused        string // "" = no refusal
	}{
		{"none", 0, 0, 0, ""},
		{"everyday", 1 | 2 | 8 | 16, 1 | 2 | 8 | 16 | 32, 0, ""},
		{"tagged history", 1024, 1024, 0, ""},
		{"tagged history in the reader word only", 1024, 0, 1, ""},
		{"mixed versions in the writer word only", 0, 256, 1, ""},
		{"what Lance refuses and frifs reads", 64 | 512 | 8192 | 65536, 64 | 512 | 8192 | 65536, 0, ""},
		{"field ids in the reader word", 32768, 32768, 1, ""},
		{"fragment tree", 4096, 4096, 1, "4096 (fragment_tree)"},
		{"unknown reader bit", 1 << 18, 1 << 18, 1, "262144 (bit 18, unknown)"},
		{"highest bit", 1 << 63, 0, 1, "9223372036854775808 (bit 63, unknown)"},
		{"unknown writer bit", 0, 1 << 40, 0, ""},
		{"object metadata", 0, 131072, 0, ""},
	} {
		m := manifestOf(t, &pb.Manifest{ReaderFeatureFlags: proto.Uint64(tt.reader), WriterFeatureFlags: proto.Uint64(tt.writer)})
		if tt.writer&FlagFieldIDs != 0 {
			m.Warnings = m.Warnings[:len(m.Warnings)-1] // the field that goes with it is not there
		}
		if got := FlagFindings(tt.reader, tt.writer); len(got) != tt.findings || len(m.Warnings) != tt.findings {
			t.Errorf("%s: findings %q, warnings %q, want %d", tt.name, got, m.Warnings, tt.findings)
		}
		err := Refusal(m)
		if (tt.refused == "") != (err == nil) || err != nil && (!fault.Is(err, fault.Unsupported) || !contains(err, tt.refused)) {
			t.Errorf("%s: refusal %v, want %q", tt.name, err, tt.refused)
		}
	}
}

func TestStructureIsComparedWithFlags(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    *pb.Manifest
		want int
	}{
		{"fragment tree without its flag", &pb.Manifest{FragmentTree: &pb.FragmentTreeMetadata{}}, 1},
		{"max field id without its flag", &pb.Manifest{MaxAllocatedFieldId: proto.Int32(3)}, 1},
		{"max field id with its flag", &pb.Manifest{MaxAllocatedFieldId: proto.Int32(3), WriterFeatureFlags: proto.Uint64(FlagFieldIDs)}, 0},
		{"base id twice", &pb.Manifest{BasePaths: []*pb.BasePath{{Id: proto.Uint32(1)}, {Id: proto.Uint32(1)}}}, 1},
	} {
		if m := manifestOf(t, tt.m); len(m.Warnings) != tt.want {
			t.Errorf("%s: warnings %q, want %d", tt.name, m.Warnings, tt.want)
		}
	}
}
