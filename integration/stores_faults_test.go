package integration

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/integration/stores/proxy"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/nodes"
)

// behind puts a proxy before a server.
func behind(t testing.TB, o *objects, plan proxy.Plan) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(o.target, plan)
	if err != nil {
		t.Fatal(err)
	}
	p.RewriteHost = o.name == "fake-gcs-server" // which knows itself by one name only; nobody signs it
	t.Cleanup(p.Close)
	return p
}

// badNetwork does something bad to every fourth request. The same seed gives the same faults in the same order.
func badNetwork(seed uint64) proxy.Plan {
	return func(n int, _ *http.Request) proxy.Fault {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		bytes := r.Int64N(1 << r.IntN(20))
		switch k := r.IntN(100); {
		case k < 3:
			return proxy.Fault{Status: http.StatusInternalServerError}
		case k < 6:
			return proxy.Fault{Status: http.StatusServiceUnavailable, RetryAfter: r.IntN(2)}
		case k < 9:
			return proxy.Fault{Status: http.StatusTooManyRequests}
		case k < 13:
			return proxy.Fault{Reset: true}
		case k < 17:
			return proxy.Fault{Cut: true, Bytes: bytes}
		case k < 19:
			return proxy.Fault{Shorten: true, Bytes: bytes}
		case k < 20:
			return proxy.Fault{Lengthen: true, Bytes: bytes}
		case k < 22:
			return proxy.Fault{Stall: time.Minute, Bytes: bytes}
		case k < 23:
			return proxy.Fault{Delay: time.Minute}
		case k < 25:
			return proxy.Fault{Delay: 100 * time.Millisecond}
		}
		return proxy.Fault{}
	}
}

// TestEveryFileIsRightOrAnError walks a whole tree over a bad network.
func TestEveryFileIsRightOrAnError(t *testing.T) {
	dir := testdata.Dataset(t, "tagged/stuck")
	want := localTree(t, dir)
	eachServer(t, func(t *testing.T, o *objects) {
		o.upload(t, dir, "t.lance")
		p := behind(t, o, nil)
		uri := o.uri(t, p.URL, "t.lance")
		shown, _, _ := strings.Cut(uri, "?")
		for seed := range uint64(2) {
			layer := store.NewLayer(store.Config{Stall: 300 * time.Millisecond, CallTimeout: 5 * time.Second})
			opt := store.Options{Layer: layer}
			p.SetPlan(nil)
			tree, err := openTree(t, uri, opt)
			if err != nil {
				t.Fatal(err)
			}
			p.SetPlan(badNetwork(seed))
			begin := time.Now()
			got := walkAll(t, tree, shown)
			took := time.Since(begin)
			_, failed := compare(t, want, got, func(_ string, err error) bool {
				return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.TimedOut)
			})
			t.Logf("seed %d: %v for %d entries, %d failed; %d requests; %+v", seed, took, len(want), failed, len(p.Requests()), layer.Stats())
			if took > time.Minute {
				t.Errorf("the walk took %v", took)
			}
			if failed > len(want)/20 {
				t.Errorf("%d of %d entries failed in spite of retries", failed, len(want))
			}
		}
	})
}

// TestStoreThatGoesAwayAndComesBack reads while the store answers nothing at all, and after that.
func TestStoreThatGoesAwayAndComesBack(t *testing.T) {
	o := startS3(t)
	dir := testdata.Dataset(t, "tagged/stuck")
	o.upload(t, dir, "t.lance")
	p := behind(t, o, nil)
	uri := o.uri(t, p.URL, "t.lance")
	tree, err := openTree(t, uri, store.Options{Layer: store.NewLayer(store.Config{Stall: 200 * time.Millisecond, CallTimeout: 2 * time.Second})})
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Value
	down.Store(proxy.Fault{Delay: time.Hour})
	p.SetPlan(func(int, *http.Request) proxy.Fault { return down.Load().(proxy.Fault) })
	for name, f := range map[string]proxy.Fault{"silent": {Delay: time.Hour}, "resetting": {Reset: true}, "busy": {Status: 503}} {
		down.Store(f)
		begin := time.Now()
		_, err := readPath(t, tree, "latest/version.json")
		if err == nil || time.Since(begin) > 10*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(begin))
		} else if k := fault.KindOf(err); k != fault.Unavailable && k != fault.TimedOut {
			t.Errorf("%s: %v", name, err)
		}
	}
	down.Store(proxy.Fault{})
	want, err := readPath(t, mustTree(t, dir), "latest/version.json")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() error {
		got, err := readPath(t, tree, "latest/version.json")
		if err == nil && got != want {
			t.Errorf("other bytes after the store came back: %s", got)
		}
		return err
	})
}

func mustTree(t testing.TB, uri string) *nodes.Tree {
	t.Helper()
	tree, err := openTree(t, uri, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// readPath reads a file of a tree.
func readPath(t testing.TB, tree *nodes.Tree, path string) (string, error) {
	t.Helper()
	f, err := nodes.FS(tree.Root()).Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}
