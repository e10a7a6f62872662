package lancefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/frifs/frifs/internal/pb"
)

// zstdMagic begins a frame.
var zstdMagic = [4]byte{0x28, 0xb5, 0x2f, 0xfd}

// maxLZ4Ratio is more than the ratio that an LZ4 block can reach: a byte of input adds at most 255 bytes to a match.
const maxLZ4Ratio = 256

// zstdRoom is the room for a small frame.
const zstdRoom = 64 << 10

// zstdPool keeps decoders of one file for reuse. The zero value is ready.
type zstdPool struct{ p sync.Pool }

func (z *zstdPool) get() (*zstd.Decoder, error) {
	if d, ok := z.p.Get().(*zstd.Decoder); ok {
		return d, nil
	}
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true))
}

// decompress undoes a general-purpose compression. LZ4 is a u32 length and a block, ZSTD a u64 length and a frame, or
// a frame alone. The result has at most limit bytes; a longer claim is refused before anything is allocated.
func (z *zstdPool) decompress(scheme pb.BufferCompression_Scheme, b []byte, limit uint64) ([]byte, error) {
	switch scheme {
	case pb.BufferCompression_LZ4:
		if len(b) < 4 {
			return nil, fmt.Errorf("LZ4 buffer of %d bytes has no length", len(b))
		}
		n := uint64(binary.LittleEndian.Uint32(b))
		if n > limit {
			return nil, fmt.Errorf("LZ4 buffer says %d bytes uncompressed, at most %d are expected", n, limit)
		}
		if n > maxLZ4Ratio*uint64(len(b)) {
			return nil, fmt.Errorf("LZ4 buffer says %d bytes uncompressed, its %d bytes cannot hold as many", n, len(b))
		}
		out := make([]byte, n)
		if n == 0 {
			return out, nil
		}
		got, err := lz4.UncompressBlock(b[4:], out)
		if err != nil {
			return nil, fmt.Errorf("LZ4 block of %d bytes: %w", len(b)-4, err)
		}
		if uint64(got) != n {
			return nil, fmt.Errorf("LZ4 block gives %d bytes, its length says %d", got, n)
		}
		return out, nil
	case pb.BufferCompression_ZSTD:
		return z.unzstd(b, limit)
	}
	return nil, &unknownError{what: "compression", number: int(scheme)}
}

func (z *zstdPool) unzstd(b []byte, limit uint64) ([]byte, error) {
	n, stated := limit, false
	if !bytes.HasPrefix(b, zstdMagic[:]) {
		if len(b) < 8 {
			return nil, fmt.Errorf("ZSTD buffer of %d bytes has no length", len(b))
		}
		n, stated = binary.LittleEndian.Uint64(b), true
		b = b[8:]
		if n > limit {
			return nil, fmt.Errorf("ZSTD buffer says %d bytes uncompressed, at most %d are expected", n, limit)
		}
	}
	d, err := z.get()
	if err != nil {
		return nil, err
	}
	defer z.p.Put(d)
	// A stated size is believed as far as the frame goes on giving bytes: the room grows with what was there.
	var out []byte
	for room := min(n, zstdRoom+16*uint64(len(b))); ; room = min(n, 4*room) {
		out, err = d.DecodeAll(b, make([]byte, 0, room))
		if err == nil {
			break
		}
		if room == n || !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return nil, fmt.Errorf("ZSTD frame of %d bytes: %w", len(b), err)
		}
	}
	if stated && uint64(len(out)) != n {
		return nil, fmt.Errorf("ZSTD frame gives %d bytes, its length says %d", len(out), n)
	}
	return out, nil
}
