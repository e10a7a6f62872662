package nodes

// document renders the report.
func (r *orphanReport) document(uri string) *document {
	count := 0
	for _, d := range r.dirs {
		if len(d.held) == 0 {
			count++
		}
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("uri").Str(uri)
		e.K("looked_at").Time(r.at)
		e.K("versions_read").Int(int64(r.read))
		e.K("complete").Bool(len(r.unread) == 0)
		e.K("unnamed").Int(int64(count))
		e.K("note").Str("directories that no retained version of this dataset names; clones elsewhere may use them, and writers may be about to")
	})
	j.ArrayOf("unread", len(r.unread), func(e *enc, i int) {
		e.Obj(func() {
			e.K("path").Str(r.unread[i].file)
			e.K("error").Err(r.unread[i].err)
		})
	})
	j.ArrayOf("directories", len(r.dirs), func(e *enc, i int) {
		e.Obj(func() { r.dirs[i].members(e, r) })
	})
	return j.Done()
}

func (d *ownedDir) members(e *enc, r *orphanReport) {
	e.K("kind").Str(d.kind)
	e.K("path").Str(d.path)
	e.K("uri").Str(d.uri)
	e.K("held_by").Arr(func() {
		for _, h := range d.held {
			e.Item().Obj(func() {
				e.K("table").OptStr(h.table)
				e.K("branch").OptStr(h.branch)
				e.K("versions").Arr(func() {
					for _, run := range h.runs {
						e.Item().Arr(func() {
							e.Item().Uint(run.first)
							e.Item().Uint(run.last)
						})
					}
				})
				e.K("detached").Arr(func() {
					for _, n := range h.detached {
						e.Item().Wide(n)
					}
				})
				e.K("tags").Strs(h.tags)
			})
		}
	})
	unheld := len(d.held) == 0
	e.K("orphan")
	switch {
	case !unheld:
		e.Bool(false)
	case len(r.unread) > 0:
		e.Null() // a version that could not be read may name it
	default:
		e.Bool(true)
	}
	known := unheld && d.err == nil
	e.K("fresh").OptBool(when(known && d.files > 0, r.at.Sub(d.newest) < freshFor))
	e.K("staged").OptBool(when(known, d.staged))
	e.K("files").OptUint(when(known, uint64(d.files)))
	e.K("bytes").OptUint(when(known, uint64(d.bytes)))
	e.K("newest_file_at")
	if known && d.files > 0 {
		e.Time(d.newest)
	} else {
		e.Null()
	}
	e.K("error").Err(d.err)
}
