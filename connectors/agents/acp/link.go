package acp

import (
	"context"
	"errors"
)

// link is the connection to nod, made at the first use.
type link struct {
	connect Connect
	nod     chan Nod // holds one value: the connection, or nil if there is none yet
}

func newLink(connect Connect) link {
	l := link{connect, make(chan Nod, 1)}
	l.nod <- nil
	return l
}

// get returns the connection to nod, and makes it if there is none. Only one caller at
// a time connects; the others wait.
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
		err = errors.New("connecting to nod returned no connection")
	}
	if err != nil {
		nod = nil
	}
	return nod, err
}
