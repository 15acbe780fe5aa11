package test

import (
	"context"
	"testing"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// A viewer that was disconnected shows the decisions it missed once it is back.
func TestAViewerThatWasAwayLearnsWhatEnded(t *testing.T) {
	t.Parallel()
	env := start(t)
	wire := env.wire()
	conn := env.dial(roles.ConnectorID("web"), wire.url)
	defer conn.Close()
	system := actors.NewSystem(quiet())
	defer system.Stop()
	shown := make(chan schemas.Prompt, 100)
	viewer, err := connector.View(env.ctx, system, conn, "web", quiet(), func(p schemas.Prompt) { shown <- p })
	env.NoError(err)
	defer func() { env.NoError(viewer.Stop(context.Background())) }()

	ended := env.Agent("ada").Asks(deploy("S", "1"))
	env.Agent("ada").Asks(deploy("S", "2"))
	for range 2 {
		env.Nil((<-shown).Decision)
	}
	wire.hold()
	d := env.Ann().Denies(ended)
	env.soon("the outbox is idle", env.outboxIdle)
	env.Empty(shown)
	wire.cut()
	p := <-shown
	env.Equal("1", p.PendingID)
	env.Equal(d, *p.Decision)
}

// A version that arrives after a newer one is not shown.
func TestAnOlderViewThatComesLateIsNotShown(t *testing.T) {
	t.Parallel()
	env := start(t)
	conn := env.conn(roles.ConnectorID("terminal"))
	system := actors.NewSystem(quiet())
	defer system.Stop()
	shown := make(chan schemas.Prompt, 100)
	viewer, err := connector.View(env.ctx, system, conn, "terminal", quiet(), func(p schemas.Prompt) { shown <- p })
	env.NoError(err)
	defer func() { env.NoError(viewer.Stop(context.Background())) }()
	q := env.Agent("ada").Asks(deploy("S", "1"))
	late := <-shown
	env.Ann().Denies(q)
	env.NotNil((<-shown).Decision)
	engine := env.conn(roles.ID{Role: roles.Engine})
	env.NoError(engine.Publish(schemas.ViewSubject("S", "1"), late))
	env.NoError(engine.PublishVersion(schemas.ViewSubject("S", "1"), late, "S.1", late.Revision))
	env.NoError(engine.Flush(env.ctx))
	env.Agent("ada").Asks(deploy("S", "2"))
	env.Equal("2", (<-shown).PendingID, "the late version came before this one on the same connection, and must not be shown")
}
