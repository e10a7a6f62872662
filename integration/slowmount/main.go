package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/frifs/frifs/fs"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
	"github.com/frifs/frifs/nodes"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	delay := flag.Duration("delay", 0, "how late each call of the store is answered")
	later := flag.Bool("slow-after-mount", false, "answer at once until the mount stands")
	opTimeout := flag.Duration("op-timeout", time.Minute, "bound of an operation")
	report := flag.String("report", "", "where SIGUSR1 writes the counted calls")
	flag.Parse()
	if flag.NArg() != 2 {
		return fmt.Errorf("usage: slowmount [flags] DATASET MOUNTPOINT")
	}
	sig := make(chan os.Signal, 4) // before the mount can be seen: an unexpected SIGUSR1 would end the process
	signal.Notify(sig, syscall.SIGUSR1, syscall.SIGTERM, os.Interrupt)
	ctx := context.Background()
	local, err := store.NewLocal(flag.Arg(0), store.Options{})
	if err != nil {
		return err
	}
	counting := storetest.New(local, 0)
	counting.HideLocal = true
	st := late{Store: counting, delay: new(atomic.Int64)}
	if !*later {
		st.delay.Store(int64(*delay))
	}
	ds, err := dataset.Open(ctx, st, dataset.Options{})
	if err != nil {
		return err
	}
	tree, err := nodes.New(ctx, nodes.Config{Dataset: ds, OpTimeout: *opTimeout})
	if err != nil {
		return err
	}
	defer tree.Close()
	srv, err := fs.Mount(ctx, tree.Root(), flag.Arg(1), fs.Options{Source: ds.URI(), OpTimeout: *opTimeout, MetadataTimeout: *opTimeout})
	if err != nil {
		return err
	}
	st.delay.Store(int64(*delay))
	for {
		select {
		case <-srv.Done():
			return nil
		case s := <-sig:
			if s != syscall.SIGUSR1 {
				return srv.Unmount()
			}
			if err := write(*report, counting); err != nil {
				return err
			}
		}
	}
}

// write writes the calls that were counted, at once, and counts anew.
func write(path string, c *storetest.Counting) error {
	calls := map[string]int{}
	for call, n := range c.Calls() {
		calls[call.Method+" "+call.Name] = n
	}
	c.Reset()
	b, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// late answers each call after a delay that may be changed while it is used.
type late struct {
	store.Store
	delay *atomic.Int64 // nanoseconds
}

func (l late) wait(ctx context.Context) error {
	timer := time.NewTimer(time.Duration(l.delay.Load()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// List implements store.Store.
func (l late) List(ctx context.Context, dir string) ([]store.Object, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	return l.Store.List(ctx, dir)
}

// Stat implements store.Store.
func (l late) Stat(ctx context.Context, name string) (store.Object, error) {
	if err := l.wait(ctx); err != nil {
		return store.Object{}, err
	}
	return l.Store.Stat(ctx, name)
}

// ReadRange implements store.Store.
func (l late) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	return l.Store.ReadRange(ctx, name, off, n)
}

// Open implements store.Store; reads of what was opened are late too.
func (l late) Open(ctx context.Context, name string) (store.Reader, error) {
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	r, err := l.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return lateReader{r, l}, nil
}

// Sub implements store.Store.
func (l late) Sub(dir string) store.Store { return late{l.Store.Sub(dir), l.delay} }

type lateReader struct {
	store.Reader
	late late
}

// ReadAtContext implements the optional method that store.ReadAt looks for.
func (r lateReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := r.late.wait(ctx); err != nil {
		return 0, err
	}
	return store.ReadAt(ctx, r.Reader, p, off)
}

// ReadAt implements io.ReaderAt.
func (r lateReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}
