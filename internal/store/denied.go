package store

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"gocloud.dev/blob"

	"github.com/frifs/frifs/fault"
)

// denials remembers for directories whether the store lets us list them. A store that does not answers 403 for names
// that do not exist, so as not to tell.
type denials struct {
	mu   sync.Mutex // guards the rest
	dirs map[string]bool
}

// maxDenials bounds what is remembered of one store.
const maxDenials = 4096

// hidden turns "denied" into "not found" where listing is denied too: then the answer says nothing else about a name.
// The directory is asked for once.
func (d *layered) hidden(ctx context.Context, name string, err error) error {
	if a, ok := answerIn(err); !fault.Is(err, fault.Denied) || noCredentials(err) || ok && (a.status == http.StatusUnauthorized || a.unknownUser()) {
		return err
	}
	dir := ""
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir = name[:i]
	}
	d.denials.mu.Lock()
	denied, known := d.denials.dirs[dir]
	d.denials.mu.Unlock()
	if !known {
		_, _, lerr := pager{d}.page(ctx, dir, blob.FirstPageToken, 1)
		if denied = fault.Is(lerr, fault.Denied); lerr != nil && !denied {
			return err // not known now: ask again next time
		}
		d.denials.mu.Lock()
		if d.denials.dirs == nil || len(d.denials.dirs) >= maxDenials {
			d.denials.dirs = map[string]bool{}
		}
		d.denials.dirs[dir] = denied
		d.denials.mu.Unlock()
	}
	if !denied {
		return err
	}
	return fault.New("store.Read", Join(d.URI(), name), fault.NotFound,
		"absent, or hidden: listing is denied here, and then the store answers the same for missing and for forbidden names: %w", err)
}
