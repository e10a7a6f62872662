package nodes

// jsonDoc builds a document that is one JSON object, part by part. Containers opened with Object and Array may be
// nested; each member or element added inside becomes a part of its own, so that huge arrays render piecewise.
type jsonDoc struct {
	doc   document
	stack []frame
}

type frame struct {
	end   byte
	empty bool
}

func newJSONDoc() *jsonDoc {
	j := &jsonDoc{}
	j.text("{")
	j.stack = []frame{{end: '}', empty: true}}
	return j
}

func (j *jsonDoc) text(s string) {
	j.doc.pieces = append(j.doc.pieces, piece{n: 1, fn: func(e *enc, _ int) { e.b = append(e.b, s...) }})
}

func (j *jsonDoc) add(n int, fn func(e *enc, i int)) {
	if n == 0 {
		return
	}
	top := &j.stack[len(j.stack)-1]
	j.doc.pieces = append(j.doc.pieces, piece{n: n, depth: len(j.stack), first: top.empty, fn: fn})
	top.empty = false
}

// K adds the member k to the innermost object; f writes its value.
func (j *jsonDoc) K(k string, f func(e *enc)) {
	j.add(1, func(e *enc, _ int) { f(e.K(k)) })
}

// Members adds members that f writes with e.K. It must write at least one.
func (j *jsonDoc) Members(f func(e *enc)) {
	j.add(1, func(e *enc, _ int) { f(e) })
}

// Items adds n elements to the innermost array; f writes the value of element i.
func (j *jsonDoc) Items(n int, f func(e *enc, i int)) {
	j.add(n, func(e *enc, i int) { f(e.Item(), i) })
}

// ArrayOf adds the member k: an array of n elements.
func (j *jsonDoc) ArrayOf(k string, n int, f func(e *enc, i int)) {
	j.Array(k)
	j.Items(n, f)
	j.End()
}

// Array opens the member k as an array; End closes it.
func (j *jsonDoc) Array(k string) { j.open(&k, '[', ']') }

// Object opens the member k as an object; End closes it.
func (j *jsonDoc) Object(k string) { j.open(&k, '{', '}') }

// ItemObject opens an object as the next element of the innermost array; End closes it.
func (j *jsonDoc) ItemObject() { j.open(nil, '{', '}') }

func (j *jsonDoc) open(k *string, begin, end byte) {
	j.add(1, func(e *enc, _ int) {
		if k != nil {
			e.K(*k)
		} else {
			e.Item()
		}
		e.b = append(e.b, begin)
	})
	j.stack = append(j.stack, frame{end: end, empty: true})
}

// End closes the innermost container.
func (j *jsonDoc) End() {
	top := j.stack[len(j.stack)-1]
	j.stack = j.stack[:len(j.stack)-1]
	depth := len(j.stack)
	j.doc.pieces = append(j.doc.pieces, piece{n: 1, depth: depth, fn: func(e *enc, _ int) {
		if !top.empty {
			e.newline(false)
		}
		e.b = append(e.b, top.end)
	}})
}

// Done closes the document and returns it.
func (j *jsonDoc) Done() *document {
	for len(j.stack) > 0 {
		j.End()
	}
	j.text("\n")
	return &j.doc
}
