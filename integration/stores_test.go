package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/nodes"
)

// openTree opens the tree of a dataset in this process.
func openTree(t testing.TB, uri string, opt store.Options) (*nodes.Tree, error) {
	t.Helper()
	if opt.Layer == nil {
		opt.Layer = store.NewLayer(store.Config{})
	}
	st, err := store.OpenURI(t.Context(), uri, opt)
	if err != nil {
		return nil, err
	}
	ds, err := dataset.Open(t.Context(), st, dataset.Options{})
	if err != nil {
		return nil, err
	}
	tree, err := nodes.New(t.Context(), nodes.Config{Dataset: ds, URI: ds.URI(), OpTimeout: time.Minute})
	if err != nil {
		return nil, err
	}
	t.Cleanup(tree.Close)
	return tree, nil
}

// walked is what a walk found of one entry: the hash of its content, the target of a link, or an error.
type walked struct {
	content string
	err     error
}

// walkAll reads everything below the root, but for live files, which tell of the mount and not of the table. The URI of
// the table in a content stands for itself.
func walkAll(t testing.TB, tree *nodes.Tree, uri string) map[string]walked {
	t.Helper()
	return walkWhere(t, tree, uri, func(string) bool { return true })
}

// walkWhere is walkAll for the paths that where is true for.
func walkWhere(t testing.TB, tree *nodes.Tree, uri string, where func(path string) bool) map[string]walked {
	t.Helper()
	w := walker{uri: []byte(uri), where: where, out: map[string]walked{}, slots: make(chan struct{}, 8)}
	w.dir(t.Context(), "", tree.Root())
	w.wg.Wait()
	return w.out
}

type walker struct {
	uri   []byte
	where func(path string) bool
	slots chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	out   map[string]walked
}

func (w *walker) note(path, content string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out[path] = walked{content, err}
}

func (w *walker) dir(ctx context.Context, path string, d nodes.Dir) {
	entries, err := d.Entries(ctx)
	if err != nil {
		w.note(path+"/", "", err)
		return
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
		at := path + "/" + e.Name
		if at == "/.frifs" || at == "/dataset.json" || !w.where(at) {
			continue
		}
		n, err := d.Lookup(ctx, e.Name)
		if err != nil {
			w.note(at, "", err)
			continue
		}
		switch n := n.(type) {
		case nodes.Dir:
			w.dir(ctx, at, n)
		case nodes.Link:
			target, err := n.Target(ctx)
			w.note(at, "-> "+target, err)
		case nodes.File:
			w.slots <- struct{}{}
			w.wg.Go(func() {
				defer func() { <-w.slots }()
				content, err := w.file(ctx, n)
				w.note(at, content, err)
			})
		}
	}
	w.note(path+"/", strings.Join(names, "\n"), nil)
}

func (w *walker) file(ctx context.Context, f nodes.File) (string, error) {
	a, err := f.Attr(ctx)
	if err != nil {
		return "", err
	}
	h, err := f.Open(ctx)
	if err != nil {
		return "", err
	}
	defer h.Close()
	data := make([]byte, a.Size)
	for off := 0; off < len(data); {
		n, err := h.ReadAt(ctx, data[off:min(len(data), off+128<<10)], int64(off))
		if err != nil {
			return "", err
		}
		if n == 0 {
			return "", fmt.Errorf("%d bytes, but stat says %d", off, len(data))
		}
		off += n
	}
	return fmt.Sprintf("%x", sha256.Sum256(bytes.ReplaceAll(data, w.uri, []byte("URI")))), nil
}

// local walks the tree of a table on this machine: what every store has to give.
func localTree(t testing.TB, dir string) map[string]walked {
	t.Helper()
	tree, err := openTree(t, dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := walkAll(t, tree, dir)
	if len(out) < 50 {
		t.Fatalf("only %d entries in %s", len(out), dir)
	}
	return out
}

// compare fails the test where got differs from want. Entries for which may returns true may have an error instead.
func compare(t testing.TB, want, got map[string]walked, may func(path string, err error) bool) (wrong, failed int) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(want)) {
		w, g := want[path], got[path]
		switch {
		case g.err != nil && w.err != nil:
		case g.err != nil && may != nil && may(path, g.err):
			failed++
		case g.err != nil:
			t.Errorf("%s: %v", path, g.err)
			wrong++
		case g != w:
			if _, ok := got[path]; !ok && may != nil {
				continue // below a directory that could not be read
			}
			t.Errorf("%s: got %.200q, want %.200q, %v", path, g.content, w.content, w.err)
			wrong++
		}
		if wrong > 20 {
			t.Fatal("and more")
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is there, but should not", path)
		}
	}
	return wrong, failed
}

func eachServer(t *testing.T, test func(t *testing.T, o *objects)) {
	for name, start := range map[string]func(testing.TB) *objects{"s3": startS3, "gcs": startGCS, "azure": startAzure} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

// TestStoresGiveTheSameBytes reads the whole tree of tables from each kind of store.
func TestStoresGiveTheSameBytes(t *testing.T) {
	eachServer(t, func(t *testing.T, o *objects) {
		for _, name := range []string{"tagged/coverage", "legacy/basic", "legacy/old_1_0"} {
			dir := testdata.Dataset(t, name)
			o.upload(t, dir, name+".lance")
			uri := o.uri(t, o.target, name+".lance")
			layer := store.NewLayer(store.Config{})
			tree, err := openTree(t, uri, store.Options{Layer: layer})
			if err != nil {
				t.Fatal(err)
			}
			shown, _, _ := strings.Cut(uri, "?")
			begin := time.Now()
			compare(t, localTree(t, dir), walkAll(t, tree, shown), nil)
			t.Logf("%s: %v, %+v", name, time.Since(begin), layer.Stats())
		}
	})
}

// policy lets users do something with the bucket of a versitygw.
func (o *objects) policy(t testing.TB, statements ...map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		t.Fatal(err)
	}
	var client *s3.Client
	o.uri(t, o.target, "") // the credentials of root
	if !o.bucket(t).As(&client) {
		t.Fatal("no client for S3")
	}
	if _, err := client.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: aws.String("bucket"), Policy: aws.String(string(text))}); err != nil {
		t.Fatal(err)
	}
}

func statement(effect, who string, actions []string, resources ...string) map[string]any {
	for i, r := range resources {
		resources[i] = "arn:aws:s3:::bucket" + r
	}
	return map[string]any{"Effect": effect, "Principal": map[string]any{"AWS": []string{who}}, "Action": actions, "Resource": resources}
}

// as gives the credentials of a user to the test.
func (o *objects) as(t testing.TB, user string) {
	t.Helper()
	setenv(t, "AWS_ACCESS_KEY_ID", user, "AWS_SECRET_ACCESS_KEY", user+"-secret")
}

// TestRightsToListAndReadAreEnough reads with users who may do little.
func TestRightsToListAndReadAreEnough(t *testing.T) {
	o := startS3(t)
	dir := testdata.Dataset(t, "tagged/coverage")
	o.upload(t, dir, "t.lance")
	for _, user := range []string{"reader", "blind", "nobody"} {
		o.admin(t, "create-user", "--access", user, "--secret", user+"-secret", "--role", "user")
	}
	list, get := []string{"s3:ListBucket"}, []string{"s3:GetObject"}
	o.policy(t,
		statement("Allow", "reader", list, ""), statement("Allow", "reader", get, "/*"),
		statement("Deny", "reader", get, "/t.lance/_transactions/*", "/t.lance/_refs/*"),
		statement("Allow", "blind", get, "/t.lance/data/*"))
	want := localTree(t, dir)
	t.Run("denied prefixes", func(t *testing.T) {
		uri := o.uri(t, o.target, "t.lance")
		o.as(t, "reader")
		tree, err := openTree(t, uri, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := walkAll(t, tree, "s3://bucket/t.lance")
		for path := range got {
			if strings.HasSuffix(path, "/scan/files.json") { // says of each file if it can be had
				text, err := readPath(t, tree, path[1:])
				if err != nil || !strings.Contains(text, "denied") {
					t.Errorf("%s: %v, %.2000s", path, err, text)
				}
				delete(got, path)
			}
		}
		compare(t, want, got, func(path string, err error) bool {
			base := filepath.Base(path)
			return fault.Is(err, fault.Denied) && (base == "transaction.json" || base == "changes.json")
		})
	})
	t.Run("no list", func(t *testing.T) {
		uri := o.uri(t, o.target, "t.lance")
		o.as(t, "blind")
		st, err := store.OpenURI(t.Context(), uri, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.List(t.Context(), "data"); !fault.Is(err, fault.Denied) {
			t.Errorf("List: %v, want denied", err)
		}
		if _, err := st.Stat(t.Context(), "data/nosuch.lance"); !fault.Is(err, fault.NotFound) {
			t.Errorf("a missing name where listing is denied: %v, want not_found", err)
		}
		files, err := os.ReadDir(filepath.Join(dir, "data"))
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "data", files[0].Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := st.ReadRange(t.Context(), "data/"+files[0].Name(), 0, int64(len(content))); err != nil || !bytes.Equal(got, content) {
			t.Errorf("ReadRange: %d bytes, %v", len(got), err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		uri := o.uri(t, o.target, "t.lance")
		o.as(t, "nobody")
		r := command(t, "", exe, "ls", uri)
		if r.code != 1 || !strings.Contains(r.stderr, "denied") || strings.Contains(r.stderr, "nobody-secret") {
			t.Errorf("exit %d: %s", r.code, r.stderr)
		}
		setenv(t, "AWS_SECRET_ACCESS_KEY", "wrong-secret")
		if r = command(t, "", exe, "ls", uri); r.code != 1 || !strings.Contains(r.stderr, "denied") || strings.Contains(r.stderr, "wrong-secret") {
			t.Errorf("wrong secret: exit %d: %s", r.code, r.stderr)
		}
	})
	t.Run("anonymous", func(t *testing.T) {
		uri := o.uri(t, o.target, "t.lance")
		setenv(t, "AWS_ACCESS_KEY_ID", "", "AWS_SECRET_ACCESS_KEY", "")
		if _, err := openTree(t, uri, store.Options{Anonymous: true}); !fault.Is(err, fault.Denied) {
			t.Errorf("a private bucket: %v, want denied", err)
		}
		o.policy(t, statement("Allow", "*", list, ""), statement("Allow", "*", get, "/*"))
		uri = o.uri(t, o.target, "t.lance")
		setenv(t, "AWS_ACCESS_KEY_ID", "", "AWS_SECRET_ACCESS_KEY", "")
		tree, err := openTree(t, uri, store.Options{Anonymous: true})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, want, walkAll(t, tree, "s3://bucket/t.lance"), nil)
		if out := frifs(t, "ls", "--anonymous", uri); !strings.Contains(out, "versions") {
			t.Errorf("ls --anonymous: %q", out)
		}
	})
}

// TestMountOfAnObjectStore mounts a table in S3, with a disk cache, twice.
func TestMountOfAnObjectStore(t *testing.T) {
	o := startS3(t)
	dir := testdata.Dataset(t, "legacy/basic")
	o.upload(t, dir, "t.lance")
	uri := o.uri(t, o.target, "t.lance")
	cache := t.TempDir()
	for range 2 {
		m := mount(t, uri, "--cache-dir", cache)
		want := sh(t, root, `"$1" cat "$2" latest/fri/transitions/0001/mapping.csv | sha256sum`, exe, dir)
		if got := sh(t, m.dir, `cat latest/fri/transitions/0001/mapping.csv | sha256sum`); got != want {
			t.Error("mapping.csv differs from the local one")
		}
		sh(t, m.dir, `find latest/ -type f -exec cat {} + >/dev/null; cat .frifs/metrics | grep -q frifs_store_read_requests_total`)
		m.stop()
	}
	if out := frifs(t, "cache", "info", cache); !strings.Contains(out, "blocks     ") || strings.Contains(out, "blocks     0") {
		t.Errorf("cache info: %s", out)
	}
	frifs(t, "cache", "clear", cache)
	if out := frifs(t, "cache", "info", cache); !strings.Contains(out, "blocks     0") {
		t.Errorf("cache info after clear: %s", out)
	}
}

// TestRecreatedTableIsSeen drops a table and makes another under its name, before the eyes of a cache on disk.
func TestRecreatedTableIsSeen(t *testing.T) {
	eachServer(t, func(t *testing.T, o *objects) {
		b := o.bucket(t)
		cache := t.TempDir()
		for round := range 3 {
			key, content := "t.lance/data/a.lance", bytes.Repeat([]byte{byte('0' + round)}, 300_000)
			if err := put(t.Context(), b, key, content); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second reader may take it from the disk
				disk, err := store.OpenDiskCache(cache, store.MinDiskCache)
				if err != nil {
					t.Fatal(err)
				}
				st, err := store.OpenURI(t.Context(), o.uri(t, o.target, "t.lance"), store.Options{Layer: store.NewLayer(store.Config{Disk: disk})})
				if err != nil {
					t.Fatal(err)
				}
				list, err := st.List(t.Context(), "data")
				if err != nil || len(list) != 1 || list[0].ETag == "" {
					t.Fatalf("%+v, %v", list, err)
				}
				for name, open := range map[string]func() (store.Reader, error){
					"listed": func() (store.Reader, error) { return store.OpenObject(t.Context(), st, list[0]) },
					"named":  func() (store.Reader, error) { return st.Open(t.Context(), "data/a.lance") },
				} {
					r, err := open()
					if err != nil {
						t.Fatal(err)
					}
					p := make([]byte, len(content))
					if _, err := r.ReadAt(p, 0); err != nil || !bytes.Equal(p, content) {
						t.Errorf("round %d, %s: %.10q..., %v", round, name, p, err)
					}
					if !r.Stat().SameContent(list[0]) {
						t.Errorf("%s: %+v, listed as %+v", name, r.Stat(), list[0])
					}
					r.Close()
				}
			}
		}
	})
}
