package fs

import "strings"

// junkNames are looked up by operating systems, desktops, editors and shells in every directory they see. The tree
// has none of them, so they are answered without asking it.
var junkNames = map[string]bool{
	".DS_Store": true, ".localized": true, ".hidden": true, ".fseventsd": true, ".metadata_never_index": true,
	".metadata_never_index_unless_rootfs": true, ".TemporaryItems": true, ".apdisk": true, ".VolumeIcon.icns": true,
	".git": true, ".gitignore": true, ".gitattributes": true, ".hg": true, ".svn": true, ".bzr": true,
	".ignore": true, ".rgignore": true, ".fdignore": true, ".agignore": true, ".editorconfig": true,
	".directory": true, ".nomedia": true, ".stfolder": true, ".xdg-volume-info": true, "autorun.inf": true,
	"desktop.ini": true, "Desktop.ini": true, "Thumbs.db": true, "System Volume Information": true,
	"$RECYCLE.BIN": true,
}

// junkPrefixes open whole families of such names.
var junkPrefixes = []string{"._", ".Spotlight-V", ".Trash", ".nfs", ".fuse_hidden"}

// isJunk reports whether name can be answered with ENOENT without work.
func isJunk(name string) bool {
	if junkNames[name] {
		return true
	}
	for _, p := range junkPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
