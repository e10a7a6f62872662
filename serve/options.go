package serve

import (
	"time"

	"github.com/frifs/frifs/fault"
)

// Options configure a handler. The zero value is usable; a field that is zero takes the default named at it.
type Options struct {
	// Title names what is served at the head of directory pages: the URI of the dataset, without credentials.
	Title string
	// Release of frifs, for the foot of directory pages.
	Release string
	// Content names all that the bytes of the files depend on beside the dataset: the release, and options that change
	// them. It becomes part of entity tags, so that a tag is never that of a file made in another way. "" = nothing.
	Content string

	// OpTimeout bounds one call of the tree: finding and opening a file (with the size of a C2 file), or reading one
	// piece of it (60 s).
	OpTimeout time.Duration
	// MetadataTimeout bounds a listing and a PROPFIND (30 s, at most OpTimeout).
	MetadataTimeout time.Duration
	// StallTimeout is how long a client may take to accept one piece of an answer, at most 256 KiB (60 s).
	StallTimeout time.Duration
	// Workers is how many calls of the tree run at a time (64). Who has to wait for longer than MetadataTimeout is
	// answered 503.
	Workers int

	// Hosts are names by which clients may call the server, beside localhost and IP addresses; "*" permits any. A web
	// page of a stranger can have its own name resolve to this machine, but it cannot change the Host header.
	Hosts []string

	// Message words an error for a client. Default: its Error method.
	Message func(error) string
	// OnError is called for each failed call that says something about the data (not for absent names and clients
	// that went away). It and the other callbacks must return at once and be safe for concurrent use.
	OnError func(Failure)
	// OnRequest is called for each answered request, if it is not nil.
	OnRequest func(Access)
	// OnPanic is called when the tree panics; the request is answered 500.
	OnPanic func(value any, stack []byte)
}

// Failure is one failed call of the tree.
type Failure struct {
	Op   string // "open", "read", "list", "propfind"
	Path string // in the tree, without a leading slash
	Kind fault.Kind
	Err  error
}

// Access is one answered request.
type Access struct {
	Time   time.Time // when it came
	Remote string    // address of the client
	Method string
	Path   string // as it was asked for, still percent-encoded
	Range  string // the Range header, "" for none
	Status int
	Bytes  int64 // of the body, as sent
	Took   time.Duration
	Err    error // why it failed or broke off; nil where it did not
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.OpTimeout, 60*time.Second)
	def(&o.MetadataTimeout, min(30*time.Second, o.OpTimeout))
	def(&o.StallTimeout, 60*time.Second)
	if o.Workers <= 0 {
		o.Workers = 64
	}
	if o.Message == nil {
		o.Message = error.Error
	}
	if o.OnError == nil {
		o.OnError = func(Failure) {}
	}
	if o.OnPanic == nil {
		o.OnPanic = func(any, []byte) {}
	}
	return o
}
