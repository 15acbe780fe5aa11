package acp

import (
	"context"
	"errors"
)

// link is the way to nod, made when it is first needed.
type link struct {
	connect Connect
	nod     chan Nod // holds one, nil where there is none yet
}

func newLink(connect Connect) link {
	l := link{connect, make(chan Nod, 1)}
	l.nod <- nil
	return l
}

// get is the way to nod. One at a time makes it, the others wait.
func (l link) get(ctx context.Context) (nod Nod, err error) {
	select {
	case nod = <-l.nod:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { l.nod <- nod }()
	if nod == nil {
		nod, err = l.connect(ctx)
	}
	if err == nil && nod == nil {
		err = errors.New("connecting gave nothing")
	}
	if err != nil {
		nod = nil
	}
	return nod, err
}
