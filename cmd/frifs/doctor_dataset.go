package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/nodes"
)

// checkDataset looks whether the dataset at uri can be read, down to the manifest of its newest version; of a database,
// whether its tables can be listed.
func (t *target) checkDataset(cmd *cobra.Command, uri string) (c fs.Check, d readable) {
	c = fs.Check{Name: "dataset", Needed: true}
	src, err := t.source(cmd, uri)
	if err != nil {
		c.Detail, c.Fix = plain(err), datasetFix(uri, err)
		return c, unreadable
	}
	defer src.close()
	ctx := cmd.Context()
	c.Detail = src.describe(ctx)
	if src.ds == nil {
		tables, err := nodes.Resolve(ctx, src.root, "tables")
		dir, ok := tables.(nodes.Dir)
		var list []nodes.Entry
		if err == nil && ok {
			list, err = dir.Entries(ctx)
		}
		if err != nil {
			c.Detail += ": its tables cannot be listed: " + plain(err)
			c.Fix = datasetFix(uri, err)
			return c, unreadable
		}
		c.OK = true
		c.Detail += " of " + countWord(len(list), "table")
		return c, allReadable
	}
	var v struct {
		Rows *uint64 `json:"rows"`
	}
	if err := readJSON(ctx, src.root, "latest/version.json", &v); err != nil {
		which := "newest"
		if t.pinned() {
			which = "selected"
		}
		c.Detail += ": the " + which + " version cannot be read: " + plain(err)
		c.Fix = datasetFix(uri, err)
		switch fault.KindOf(err) {
		case fault.Corrupt, fault.Unsupported, fault.TooLarge:
			c.Fix = "an older version may work (--version N); list them with: frifs ls " + uri + " versions"
		case fault.NotFound:
			c.Fix = "see what is there with: frifs ls " + uri
		}
		return c, newestBroken
	}
	c.OK = true
	return c, allReadable
}

// datasetFix is what to do about a dataset that cannot be read.
func datasetFix(uri string, err error) string {
	remote := store.IsURI(uri)
	switch fault.KindOf(err) {
	case fault.NotFound:
		if remote {
			return "check the bucket and the prefix: a dataset is a prefix with _versions/ below it"
		}
		return "check the path: a dataset is a directory with _versions in it, see: ls " + filepath.Dir(uri)
	case fault.Denied:
		if remote {
			return "set up the cloud's credentials (AWS_PROFILE, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT), which need to list and read only, or read a public bucket with --anonymous"
		}
		return "mount as a user who may read it, or as its owner run: chmod -R a+rX " + uri
	case fault.Unavailable, fault.TimedOut:
		return "check the network, the endpoint and the region in the URI"
	case fault.Unsupported:
		return "write s3://, gs://, az://, file:// or a plain path; a newer frifs may know more"
	}
	return "frifs opens a directory or a prefix with _versions below it, or a directory of such tables"
}

// checkNewDir finds out whether dir can be written to, or made where it is not there yet; it makes nothing that stays.
func checkNewDir(dir string) (exists bool, err error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	exists = true
	for {
		fi, serr := os.Stat(at)
		if serr == nil && fi.IsDir() {
			break
		}
		if up := filepath.Dir(at); serr != nil && os.IsNotExist(serr) && up != at {
			at, exists = up, false
			continue
		}
		if serr == nil {
			serr = fmt.Errorf("%s is not a directory", at)
		}
		return exists, serr
	}
	return exists, checkWritableDir(at)
}
