// Command frifs mounts a Lance dataset read-only and shows each version's fragment reuse index and index files as plain
// files; its other subcommands give the same tree without a mount.
//
// One file holds one subcommand. Data goes to stdout and everything else to stderr; exit codes are those of
// docs/DESIGN.md, "Errors": 0 done, 1 failed, 2 usage, 3 findings, 130 interrupted. A closed pipe on stdout ends a
// command quietly.
//
// The package holds no knowledge of formats: it reads the tree of package nodes, and hands it to package fs to mount.
package main
