package store

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/frifs/frifs/fault"
)

// TestListSeesAChangingDirectory: a writer that only removes the oldest of two files after it made a new one leaves no
// moment without a file, so no listing may be empty.
func TestListSeesAChangingDirectory(t *testing.T) {
	const keep = 2
	dir := t.TempDir()
	at := func(i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
	write := func(i int) {
		if err := os.WriteFile(at(i), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	for i := range keep {
		write(i)
	}
	st, err := NewLocal(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := keep; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			write(i)
			if err := os.Remove(at(i - keep)); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 2000 {
		out, err := st.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(out) == 0 {
			t.Fatal("a listing shows no file, though there always was one")
		}
	}
	close(stop)
	<-stopped
}

// endless is a store whose listings go on for ever.
type endless struct{ *fake }

func (endless) page(context.Context, string, []byte, int) ([]Object, []byte, error) {
	return make([]Object, 50_000), []byte("more"), nil
}

func TestEndlessListingEnds(t *testing.T) {
	if out, err := NewLayer(Config{}).wrap(endless{newFake(nil)}).List(t.Context(), "d"); !fault.Is(err, fault.TooLarge) || out != nil {
		t.Errorf("%d names, %v, want too_large", len(out), err)
	}
}
