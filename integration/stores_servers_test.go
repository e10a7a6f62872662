package integration

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob"
	_ "gocloud.dev/blob/gcsblob"
	_ "gocloud.dev/blob/s3blob"
	"golang.org/x/sync/errgroup"
)

const (
	s3Root, s3RootKey = "root", "root-secret"
	azAccount         = "devstoreaccount1"
	// azKey is the key of the account that every Azurite has; it is printed in Microsoft's documentation.
	azKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// objects is a running object-store server with an empty bucket called "bucket".
type objects struct {
	name   string
	target string // http://127.0.0.1:PORT
	dir    string // versitygw: where its programs are run
	exe    string
	// uri names a path in the bucket, reached through the address at (the target, or a proxy before it).
	uri func(t testing.TB, at, path string) string
}

// server finds a program that integration/stores/servers.sh installed.
func server(t testing.TB, pattern string) string {
	t.Helper()
	find := func() []string {
		found, err := filepath.Glob(filepath.Join(root, ".cache", "servers", pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	found := find()
	if len(found) == 0 && os.Getenv("FRIFS_CI") != "" { // building takes a few minutes, once
		if text, err := exec.CommandContext(t.Context(), filepath.Join(root, "integration", "stores", "servers.sh")).CombinedOutput(); err != nil {
			t.Fatalf("integration/stores/servers.sh: %v: %s", err, text)
		}
		found = find()
	}
	if len(found) == 0 {
		missing(t, "there is no %s: run integration/stores/servers.sh", pattern)
	}
	return found[len(found)-1]
}

// freePort is an address of this machine where nothing listens.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// run starts a server and waits until it answers.
func (o *objects) run(t testing.TB, addr, name string, args ...string) {
	t.Helper()
	logs := new(log)
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = logs, logs, o.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("%s: %.4000s", o.name, logs)
		}
	})
	o.target = "http://" + addr
	eventually(t, 30*time.Second, func() error {
		select {
		case <-done:
			t.Fatalf("%s ended: %s", o.name, logs)
		default:
		}
		answer, err := http.Get(o.target)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	})
}

func startS3(t testing.TB) *objects {
	t.Helper()
	o := &objects{name: "versitygw", dir: t.TempDir(), exe: server(t, "versitygw-*")}
	o.uri = func(t testing.TB, at, path string) string {
		setenv(t, "AWS_ACCESS_KEY_ID", s3Root, "AWS_SECRET_ACCESS_KEY", s3RootKey, "AWS_EC2_METADATA_DISABLED", "true")
		return "s3://bucket/" + path + "?region=us-east-1&endpoint=" + at
	}
	for _, d := range []string{"data", "iam", "meta"} {
		if err := os.Mkdir(filepath.Join(o.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	addr := freePort(t)
	o.run(t, addr, o.exe, "--port", addr, "--access", s3Root, "--secret", s3RootKey, "--iam-dir", filepath.Join(o.dir, "iam"), "--iam-cache-disable",
		"--keep-alive", "--quiet", "posix", "--sidecar", filepath.Join(o.dir, "meta"), filepath.Join(o.dir, "data"))
	o.admin(t, "create-user", "--access", "owner", "--secret", "owner-secret", "--role", "user")
	o.admin(t, "create-bucket", "--owner", "owner", "--bucket", "bucket")
	return o
}

// admin runs versitygw's own client.
func (o *objects) admin(t testing.TB, args ...string) {
	t.Helper()
	all := append([]string{"admin", "--access", s3Root, "--secret", s3RootKey, "--endpoint-url", o.target}, args...)
	if r := command(t, "", o.exe, all...); r.code != 0 {
		t.Fatalf("versitygw %q: %s%s", args, r.stdout, r.stderr)
	}
}

func startGCS(t testing.TB) *objects {
	t.Helper()
	o := &objects{name: "fake-gcs-server", dir: t.TempDir()}
	o.uri = func(t testing.TB, at, path string) string {
		setenv(t, "STORAGE_EMULATOR_HOST", strings.TrimPrefix(at, "http://"))
		return "gs://bucket/" + path
	}
	addr := freePort(t)
	host, port, _ := net.SplitHostPort(addr)
	o.run(t, addr, server(t, "fake-gcs-server-*"), "-backend", "memory", "-scheme", "http", "-host", host, "-port", port, "-public-host", addr, "-log-level", "error")
	answer, err := http.Post(o.target+"/storage/v1/b?project=p", "application/json", strings.NewReader(`{"name":"bucket"}`))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("making a bucket: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
	return o
}

func startAzure(t testing.TB) *objects {
	t.Helper()
	needTool(t, "node")
	o := &objects{name: "azurite", dir: t.TempDir()}
	o.uri = func(t testing.TB, at, path string) string {
		setenv(t, "AZURE_STORAGE_ACCOUNT", azAccount, "AZURE_STORAGE_KEY", azKey)
		return "az://bucket/" + path + "?protocol=http&localemu=true&domain=" + strings.TrimPrefix(at, "http://")
	}
	addr := freePort(t)
	host, port, _ := net.SplitHostPort(addr)
	o.run(t, addr, "node", server(t, "azurite-*/node_modules/azurite/dist/src/blob/main.js"),
		"--blobHost", host, "--blobPort", port, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	cred, err := azblob.NewSharedKeyCredential(azAccount, azKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azblob.NewClientWithSharedKeyCredential(o.target+"/"+azAccount, cred, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateContainer(t.Context(), "bucket", nil); err != nil {
		t.Fatal(err)
	}
	return o
}

// setenv sets variables for the test, by pairs of name and value.
func setenv(t testing.TB, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

// bucket opens the bucket for writing, with gocloud alone.
func (o *objects) bucket(t testing.TB) *blob.Bucket {
	t.Helper()
	uri := strings.Replace(o.uri(t, o.target, ""), "/?", "?", 1)
	uri = strings.Replace(uri, "az://", "azblob://", 1)
	if o.name == "versitygw" {
		uri += "&use_path_style=true"
	}
	b, err := blob.OpenBucket(t.Context(), strings.TrimSuffix(uri, "/"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// upload puts the files of a folder below a path of the bucket.
func (o *objects) upload(t testing.TB, dir, path string) {
	t.Helper()
	b := o.bucket(t)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(16)
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		g.Go(func() error {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			return put(ctx, b, path+"/"+filepath.ToSlash(rel), data)
		})
		return nil
	})
	if werr := g.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		t.Fatal(err)
	}
}

func put(ctx context.Context, b *blob.Bucket, key string, data []byte) error {
	return b.Upload(ctx, key, bytes.NewReader(data), &blob.WriterOptions{ContentType: "application/octet-stream"})
}
