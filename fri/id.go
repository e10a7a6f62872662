package fri

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"

	"github.com/frifs/frifs/fault"
)

const (
	idBytes   = 8         // of the SHA-256 that the id shows
	hashChunk = 256 << 10 // bytes of one read while a record is hashed
)

// ident computes the id of a record once and keeps it. Callers that come while it is computed wait for it, or until
// their own context ends.
type ident struct {
	mu   sync.Mutex    // guards the two below; not held while reading
	id   string        // "" until known
	busy chan struct{} // closed when the running computation ends
}

func (i *ident) get(ctx context.Context, compute func() (string, error)) (string, error) {
	for {
		i.mu.Lock()
		if i.id != "" {
			id := i.id
			i.mu.Unlock()
			return id, nil
		}
		wait := i.busy
		if wait == nil {
			i.busy = make(chan struct{})
			i.mu.Unlock()
			return i.lead(compute)
		}
		i.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return "", fault.Wrap("fri.ID", "", ctx.Err())
		}
	}
}

func (i *ident) lead(compute func() (string, error)) (id string, err error) {
	defer func() {
		i.mu.Lock()
		i.id = id
		close(i.busy)
		i.busy = nil
		i.mu.Unlock()
	}()
	return compute()
}

// identity returns the id of the record at [off, off+n) of r.
func (rec *record) identity(ctx context.Context, r Reader, off, n int64) (string, error) {
	return rec.id.get(ctx, func() (string, error) { return recordID(ctx, r, off, n, rec.form) })
}

// recordID hashes a record's message value without the base_id of a stable partition.
func recordID(ctx context.Context, r Reader, off, n int64, form Form) (string, error) {
	h := sha256.New()
	w := &window{ctx: ctx, r: r, size: min(r.Size(), off+n), ahead: 4 << 10}
	pos := off // everything before it is hashed
	for form == Tagged {
		c := &cursor{w: w, pos: pos, end: off + n}
		f, rest, without, err := nextBaseID(c)
		if err != nil {
			return "", err
		}
		if !rest {
			break
		}
		// The key stays as it is; the length is encoded anew.
		key, err := w.peek(f.key, binary.MaxVarintLen64)
		if err != nil {
			return "", err
		}
		_, kn := binary.Uvarint(key)
		head := bytes.Clone(key[:kn])
		if err := hashRange(ctx, h, r, pos, f.key); err != nil {
			return "", err
		}
		h.Write(binary.AppendUvarint(head, uint64(len(without))))
		h.Write(without)
		pos = f.next
	}
	if err := hashRange(ctx, h, r, pos, off+n); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:idBytes]), nil
}

// nextBaseID finds the next stable partition that has a base_id and returns its field and its bytes without it. A
// message that does not parse is taken as it is.
func nextBaseID(c *cursor) (f field, found bool, without []byte, err error) {
	for {
		f, ok, err := c.next()
		if err != nil { // a message that does not parse has no base_id to leave out
			_, err = split(err)
			return field{}, false, nil, err
		}
		if !ok {
			return field{}, false, nil, nil
		}
		if f.num != fieldStablePartition || f.typ != wireBytes || f.n > maxPartitionLen {
			continue
		}
		msg := make([]byte, f.n)
		if err := readFull(c.w.ctx, c.w.r, msg, f.off); err != nil {
			return field{}, false, nil, err
		}
		if without, cut := cutBaseID(msg); cut {
			return f, true, without, nil
		}
	}
}

// maxPartitionLen bounds the StablePartition message that is looked at for a base_id; real ones are below 100 bytes.
const maxPartitionLen = 1 << 20

// cutBaseID removes every base_id (field 3, varint) of a StablePartition message.
func cutBaseID(msg []byte) (without []byte, cut bool) {
	r := bytes.NewReader(msg)
	w := &window{ctx: context.Background(), r: r, size: r.Size(), ahead: len(msg)}
	c := &cursor{w: w, end: r.Size()}
	from := int64(0)
	for {
		f, ok, err := c.next()
		if err != nil {
			return nil, false
		}
		if !ok {
			break
		}
		if f.num == 3 && f.typ == wireVarint {
			without = append(without, msg[from:f.key]...)
			from, cut = f.next, true
		}
	}
	return append(without, msg[from:]...), cut
}

// hashRange feeds the bytes [from, to) of r to h.
func hashRange(ctx context.Context, h hash.Hash, r Reader, from, to int64) error {
	if from >= to {
		return nil
	}
	buf := make([]byte, min(to-from, hashChunk))
	for from < to {
		p := buf[:min(to-from, hashChunk)]
		if err := readFull(ctx, r, p, from); err != nil {
			return err
		}
		h.Write(p)
		from += int64(len(p))
	}
	return nil
}
