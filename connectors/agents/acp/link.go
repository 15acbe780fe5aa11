package acp

import (
	"context"
	"errors"
)

// link connects to nod at its first use, and keeps the connection.
type link struct {
	connect Connect
	nod     chan Nod // contains the connection, or nil if there is none; empty while get runs, so that the channel is also a lock
}

func newLink(connect Connect) link {
	l := link{connect, make(chan Nod, 1)}
	l.nod <- nil
	return l
}

// get returns the connection to nod. If there is none, get connects. If another caller is connecting,
// get waits for it, at most until ctx ends.
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
