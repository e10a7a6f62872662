package nodes

import "github.com/frifs/frifs/internal/store"

// join lets what the cache keeps count in a budget.
func (f *flight[K, V]) join(b *store.Budget, name string) { f.share = b.Share(name, f.shrink) }

// shrink lets go of so many bytes, the least recently used first. The newest entry stays.
func (f *flight[K, V]) shrink(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	goal := f.cost - bytes
	for el := f.lru.Back(); el != nil && el != f.lru.Front() && f.cost > goal; {
		prev := el.Prev()
		if settled(el.Value.(*loading[K, V])) {
			f.remove(el)
		}
		el = prev
	}
}

// join lets all caches of a mount count in a budget.
func (s *shared) join(b *store.Budget) {
	if b == nil {
		return
	}
	s.loads.join(b, "manifests")
	s.hists.join(b, "histories")
	s.maps.join(b, "mappings")
	s.files.join(b, "files")
	s.txns.join(b, "transactions")
	s.docs.join(b, "documents")
	s.found.join(b, "found")
	s.remaps.join(b, "remapped")
	s.made.join(b, "reserialised")
	s.lance.entries.join(b, "remapped_manifests")
	s.lance.plans.join(b, "remapped_manifests")
	s.lance.kept.join(b, "remapped_manifests")
	s.dirs.join(b, "names")
	s.sizes.join(b, "names")
	s.opened.join(b, "names")
	s.facts.join(b, "names")
	b.Watch("records", func() int64 { return s.records.Stats().Bytes })
	b.Watch("blocks", func() int64 { return s.blocks.Stats().Used })
}

// memory writes what the caches of the process hold, and their common bound.
func (e *enc) memory(b *store.Budget) {
	e.K("memory")
	if b == nil {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("limit_bytes").Int(b.Limit())
		e.K("used_bytes").Int(b.Used())
		e.K("parts").Obj(func() {
			for _, p := range b.Parts() {
				e.K(p.Name).Int(p.Bytes)
			}
		})
	})
}
