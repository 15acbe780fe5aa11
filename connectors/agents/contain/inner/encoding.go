package inner

// coder writes the fields of a plan, or reads them. One method does both, so that the order of the
// fields is the same.
type coder struct {
	buf     []byte
	reading bool
	broken  bool // the input ended early
}

// Encode returns the encoded plan, after its length in eight bytes.
func (p *Plan) Encode() []byte {
	c := &coder{buf: make([]byte, 8, 4096)}
	c.plan(p)
	for i, n := 0, uint64(len(c.buf)-8); i < 8; i++ {
		c.buf[i] = byte(n >> (8 * i))
	}
	return c.buf
}

// Decode decodes a plan. b does not contain the eight bytes of the length. Decode returns false
// if b is incomplete.
func (p *Plan) Decode(b []byte) bool {
	c := &coder{buf: b, reading: true}
	c.plan(p)
	return !c.broken && len(c.buf) == 0
}

func (c *coder) plan(p *Plan) {
	c.flag(&p.Namespaces)
	c.flag(&p.ShareNet)
	c.flag(&p.Listen)
	c.flag(&p.Foreground)
	list(c, &p.Steps, func(s *Step) {
		kind := uint64(s.Kind)
		c.number(&kind)
		s.Kind = byte(kind)
		c.text(&s.Path)
		c.text(&s.Source)
		c.text(&s.Data)
		c.number(&s.Attr)
		c.number(&s.Dev)
		c.number(&s.Ino)
	})
	c.text(&p.Dir)
	list(c, &p.Argv, c.text)
	list(c, &p.Env, c.text)
	list(c, &p.Limits, func(l *Limit) {
		resource := uint64(l.Resource)
		c.number(&resource)
		l.Resource = int(resource)
		c.number(&l.Value)
	})
	filter := string(p.Filter)
	c.text(&filter)
	p.Filter = []byte(filter)
	c.number(&p.Handled)
	c.number(&p.Scoped)
	list(c, &p.Rules, func(r *Rule) {
		c.text(&r.Path)
		c.number(&r.Access)
		c.number(&r.Dev)
		c.number(&r.Ino)
	})
}

func (c *coder) number(n *uint64) {
	if !c.reading {
		for i := range 8 {
			c.buf = append(c.buf, byte(*n>>(8*i)))
		}
		return
	}
	if *n = 0; len(c.buf) < 8 {
		c.buf, c.broken = nil, true
		return
	}
	for i := range 8 {
		*n |= uint64(c.buf[i]) << (8 * i)
	}
	c.buf = c.buf[8:]
}

func (c *coder) flag(f *bool) {
	n := uint64(0)
	if *f {
		n = 1
	}
	c.number(&n)
	*f = n == 1
}

func (c *coder) text(s *string) {
	n := uint64(len(*s))
	c.number(&n)
	switch {
	case !c.reading:
		c.buf = append(c.buf, *s...)
	case n > uint64(len(c.buf)):
		c.buf, c.broken = nil, true
	default:
		*s, c.buf = string(c.buf[:n]), c.buf[n:]
	}
}

func list[T any](c *coder, all *[]T, one func(*T)) {
	n := uint64(len(*all))
	c.number(&n)
	if c.reading {
		if n > uint64(len(c.buf)) { // a list of n elements needs at least n bytes
			c.buf, c.broken = nil, true
			return
		}
		*all = make([]T, n)
	}
	for i := range *all {
		one(&(*all)[i])
	}
}
