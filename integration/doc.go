// Package integration has no code of its own: its tests drive the built frifs binary from outside, through mounts and
// through the tools and libraries that people use, and compare frifs with the official Lance reader.
//
// A mount always lives in another process, so that a test that reads from it can never wait for itself. What a machine
// lacks (FUSE, jq, the Python clients of requirements.txt) is named in the reason of a skip; with FRIFS_CI=1 it is
// a failure instead.
package integration
