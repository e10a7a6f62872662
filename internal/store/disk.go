package store

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/frifs/frifs/fault"
)

const (
	// MinDiskCache is the smallest bound of a disk cache, in bytes.
	MinDiskCache = 64 << 20

	diskDir    = "blocks-v1"
	diskShards = 64
	diskMagic  = "frifsb1\n"
	diskHeader = len(diskMagic) + sha256.Size
	diskTouch  = time.Minute      // a block that was used is marked so at most this often
	diskStray  = time.Hour        // a temporary file of this age belongs to no live process
	diskPause  = 30 * time.Second // after a failed write
	diskRecord = 16               // a shard is looked at anew when so much of it, as a fraction, was written by this process
)

// DiskCache keeps blocks in files, so that they outlive the process. A block is named by the hash of what it is: store,
// object, e-tag (or size and time) and number; its file holds the checksum of that and of the bytes. Processes share a
// directory without locks: a file appears whole by rename, a broken one is a miss, and removing one that is being read
// harms nobody. The bound holds for each of 64 shards of its own. Each process looks at what the others wrote from time to
// time, and the bound that it goes by is an eighth lower, for what it does not know yet.
type DiskCache struct {
	dir   string // holds the shards
	limit int64  // of one shard, in bytes

	hits, misses, corrupt, evicted atomic.Uint64
	used                           atomic.Int64 // as far as this process knows

	mu     sync.Mutex // guards the rest; not held during IO
	shards [diskShards]shardState
	paused time.Time // no writes until then
}

// shardState is what this process knows of a shard.
type shardState struct {
	known bool
	size  int64
	puts  int
	every int  // after so many puts the shard is looked at anew
	sweep bool // somebody is at it
}

// OpenDiskCache opens the cache in a directory, which is made if need be, bounded to limit bytes. Errors:
// fault.Invalid for a limit below MinDiskCache, and those of making the directory.
func OpenDiskCache(dir string, limit int64) (*DiskCache, error) {
	const op = "store.OpenDiskCache"
	if limit < MinDiskCache {
		return nil, fault.New(op, dir, fault.Invalid, "a cache of %d bytes is too small: the least is %d", limit, MinDiskCache)
	}
	at := filepath.Join(dir, diskDir)
	for i := range diskShards {
		if err := os.MkdirAll(filepath.Join(at, shardName(i)), 0o700); err != nil {
			return nil, fault.New(op, at, kindOfOS(err), "%w", bare(err))
		}
	}
	tag := filepath.Join(at, "CACHEDIR.TAG")
	if _, err := os.Stat(tag); err != nil {
		text := "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of frifs; it may be removed at any time (frifs cache clear).\n"
		_ = os.WriteFile(tag, []byte(text), 0o600) // for backup programs; the cache works without
	}
	return &DiskCache{dir: at, limit: limit / 8 * 7 / diskShards}, nil
}

func shardName(i int) string { return fmt.Sprintf("%02x", i) }

// place is the shard and the path of a block.
func (d *DiskCache) place(key string, block int64) (int, string) {
	h := sha256.Sum256([]byte(key + "|" + strconv.FormatInt(block, 10)))
	shard := int(h[0]) % diskShards
	return shard, filepath.Join(d.dir, shardName(shard), hex.EncodeToString(h[:]))
}

// sum binds the bytes of a block to what it is.
func sum(key string, block int64, data []byte) []byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d|%s|%d|", len(key), key, block) // a hash takes everything
	_, _ = h.Write(data)
	return h.Sum(nil)
}

// get returns a block of n bytes, or nil if it is not there or not whole.
func (d *DiskCache) get(key string, block int64, n int) []byte {
	data, there := d.load(key, block, int64(n), int64(n))
	switch {
	case data != nil:
		d.hits.Add(1)
	case there:
		d.corrupt.Add(1)
		fallthrough
	default:
		d.misses.Add(1)
	}
	return data
}

// has reports whether there is a file for a block, whatever is in it.
func (d *DiskCache) has(key string, block int64) bool {
	_, path := d.place(key, block)
	_, err := os.Lstat(path)
	return err == nil
}

// load reads the file of a block of least to most bytes, and removes it if it is not whole. there reports whether it was
// there.
func (d *DiskCache) load(key string, block, least, most int64) (data []byte, there bool) {
	_, path := d.place(key, block)
	// Whatever stands there must not hold the reader up, nor lead elsewhere.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		_ = os.Remove(path)
		return nil, true
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && fi.Mode().IsRegular() {
		if n := fi.Size() - int64(diskHeader); n >= least && n <= most {
			p := make([]byte, int64(diskHeader)+n)
			if _, err := io.ReadFull(f, p); err == nil && string(p[:len(diskMagic)]) == diskMagic {
				data = p[diskHeader:]
				if subtle.ConstantTimeCompare(sum(key, block, data), p[len(diskMagic):diskHeader]) == 1 {
					if now := time.Now(); now.Sub(fi.ModTime()) > diskTouch {
						_ = os.Chtimes(path, now, now) // it may be gone; then it is no longer used either
					}
					return slices.Clip(data), true
				}
			}
		}
	}
	_ = os.Remove(path) // another process may have done it
	return nil, true
}

const (
	// noteBlock is the number under which the note about a name is kept.
	noteBlock = -1
	maxNote   = 4 << 10
)

// note keeps what a name stood for, in place of an older note.
func (d *DiskCache) note(name string, n noted) {
	text := strconv.FormatInt(n.block, 10) + " " + n.identity
	if len(text) <= maxNote {
		d.write(name, noteBlock, []byte(text))
	}
}

// noted returns what a name stood for.
func (d *DiskCache) noted(name string) (noted, bool) {
	data, _ := d.load(name, noteBlock, 0, maxNote)
	number, identity, ok := strings.Cut(string(data), " ")
	block, err := strconv.ParseInt(number, 10, 64)
	return noted{identity, block}, ok && err == nil && block >= 0
}

// put keeps a block.
func (d *DiskCache) put(key string, block int64, data []byte) {
	if !d.has(key, block) {
		d.write(key, block, data)
	}
}

// write keeps the bytes of a block. What cannot be written is not kept.
func (d *DiskCache) write(key string, block int64, data []byte) {
	size := int64(diskHeader + len(data))
	d.mu.Lock()
	idle := time.Now().Before(d.paused)
	d.mu.Unlock()
	if idle || size > d.limit {
		return
	}
	shard, path := d.place(key, block)
	if err := writeWhole(path, []byte(diskMagic), sum(key, block, data), data); err != nil {
		d.mu.Lock()
		d.paused = time.Now().Add(diskPause)
		d.mu.Unlock()
		return
	}
	d.account(shard, size)
}

// writeWhole makes a file appear with all of its parts, or not at all.
func writeWhole(path string, parts ...[]byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Concat(parts...))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // or it is removed as a stray later
	}
	return err
}

// account adds a file to a shard, and makes room if that is full by now.
func (d *DiskCache) account(shard int, size int64) {
	d.mu.Lock()
	s := &d.shards[shard]
	s.size += size
	s.puts++
	d.used.Add(size)
	due := !s.sweep && (!s.known || s.size > d.limit || s.puts >= s.every)
	if due {
		s.sweep = true
	}
	d.mu.Unlock()
	if !due {
		return
	}
	left, blocks, removed := sweep(filepath.Join(d.dir, shardName(shard)), d.limit)
	d.evicted.Add(uint64(removed))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used.Add(left - s.size)
	s.known, s.size, s.puts, s.every, s.sweep = true, left, 0, max(1, blocks/diskRecord), false
}

// blockFile is a file of a shard.
type blockFile struct {
	path string
	size int64
	used time.Time
}

// blockFiles lists the blocks of a shard, and the temporary files that nobody writes any more.
func blockFiles(dir string) (blocks, strays []blockFile) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		f := blockFile{filepath.Join(dir, e.Name()), fi.Size(), fi.ModTime()}
		switch {
		case strings.HasPrefix(e.Name(), ".tmp-"):
			if time.Since(f.used) > diskStray {
				strays = append(strays, f)
			}
		case len(e.Name()) == 2*sha256.Size:
			blocks = append(blocks, f)
		}
	}
	return blocks, strays
}

// sweep removes strays, and the blocks used longest ago until a shard has a tenth of its bound free, if it was over the
// bound. It returns the size and the number of blocks that are left, and how many went.
func sweep(dir string, limit int64) (left int64, kept, removed int) {
	blocks, strays := blockFiles(dir)
	for _, f := range strays {
		_ = os.Remove(f.path) // another process may have done it
	}
	for _, f := range blocks {
		left += f.size
	}
	if left <= limit {
		return left, len(blocks), 0
	}
	slices.SortFunc(blocks, func(a, b blockFile) int { return a.used.Compare(b.used) })
	for _, f := range blocks {
		if left <= limit-limit/10 {
			break
		}
		if os.Remove(f.path) == nil {
			removed++
		}
		left -= f.size
	}
	return left, len(blocks) - removed, removed
}

// DiskUsage is what a disk cache holds.
type DiskUsage struct {
	Dir            string // the directory of the blocks
	Blocks         int
	Bytes          int64
	Oldest, Newest time.Time // last use; zero if there are no blocks
}

// InspectDiskCache looks at the cache in dir, which may be in use. Errors: fault.NotFound if there is none.
func InspectDiskCache(dir string) (DiskUsage, error) {
	u := DiskUsage{Dir: filepath.Join(dir, diskDir)}
	if _, err := os.Stat(u.Dir); err != nil {
		return u, fault.New("store.InspectDiskCache", u.Dir, kindOfOS(err), "no cache of frifs is there: %w", bare(err))
	}
	for i := range diskShards {
		blocks, _ := blockFiles(filepath.Join(u.Dir, shardName(i)))
		for _, f := range blocks {
			u.Blocks++
			u.Bytes += f.size
			if u.Oldest.IsZero() || f.used.Before(u.Oldest) {
				u.Oldest = f.used
			}
			if f.used.After(u.Newest) {
				u.Newest = f.used
			}
		}
	}
	return u, nil
}

// ClearDiskCache removes the blocks of the cache in dir, and nothing else. Processes that use it go on. It returns what
// was removed.
func ClearDiskCache(dir string) (DiskUsage, error) {
	u, err := InspectDiskCache(dir)
	if err != nil {
		return u, err
	}
	u.Blocks, u.Bytes = 0, 0
	for i := range diskShards {
		blocks, strays := blockFiles(filepath.Join(u.Dir, shardName(i)))
		for _, f := range append(blocks, strays...) {
			if err := os.Remove(f.path); err != nil && !os.IsNotExist(err) {
				return u, fault.New("store.ClearDiskCache", f.path, kindOfOS(err), "%w", bare(err))
			}
			u.Blocks++
			u.Bytes += f.size
		}
	}
	return u, nil
}
