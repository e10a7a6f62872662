package serve

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// pieceSize is how much of a file is read and sent at a time.
const pieceSize = 256 << 10

// piece is a buffer of pieceSize bytes.
type piece struct{ data []byte }

// pieces keeps buffers for further use.
type pieces struct{ pool sync.Pool }

func newPieces() *pieces {
	return &pieces{sync.Pool{New: func() any { return &piece{make([]byte, pieceSize)} }}}
}

func (ps *pieces) get() *piece { return ps.pool.Get().(*piece) }

func (ps *pieces) put(p *piece) {
	if p != nil {
		ps.pool.Put(p)
	}
}

// response is an answer in the making. Its head goes out with the first byte of the body, so that a failure before it
// can still be answered as one. It is used by one goroutine.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	pieces  *pieces
	stall   time.Duration // for each piece
	status  int           // 0: none yet
	sent    bool          // the head is out
	quiet   bool          // the body of a failure is left out
	bytes   int64
	failed  error // why the request failed
}

func newResponse(w http.ResponseWriter, ps *pieces, stall time.Duration) *response {
	return &response{ResponseWriter: w, control: http.NewResponseController(w), pieces: ps, stall: stall}
}

// WriteHeader implements http.ResponseWriter: the status is kept until the first byte.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// patience gives the client time for what is sent next. A writer that knows no deadlines (in tests) has none.
func (w *response) patience() { _ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) }

// head sends the head, if it is not out.
func (w *response) head() {
	if !w.sent {
		w.sent = true
		w.WriteHeader(http.StatusOK)
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	if w.quiet && !w.sent && w.status >= http.StatusBadRequest {
		return len(p), nil
	}
	w.patience()
	w.head()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	if err != nil && w.failed == nil {
		w.failed = err
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom: copying to an answer goes in large pieces, and those of a file are not copied
// again.
func (w *response) ReadFrom(src io.Reader) (int64, error) {
	if l, ok := src.(*io.LimitedReader); ok {
		if b, ok := l.R.(*body); ok {
			return w.readFile(b, l)
		}
	}
	buf := w.pieces.get()
	defer w.pieces.put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{src}, buf.data)
}

func (w *response) readFile(b *body, l *io.LimitedReader) (total int64, err error) {
	for l.N > 0 {
		buf, n, err := b.next(l.N)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return total, err
		}
		n, err = w.Write(buf.data[:n])
		w.pieces.put(buf)
		total += int64(n)
		l.N -= int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// end sends the head where there was no body. The write deadline belongs to the connection, so it is set anew for what
// the server still has to flush.
func (w *response) end() {
	w.patience()
	w.head()
}
